"""Our figures, each next to a yardstick measured in the same run: `make bench`, or `python -m bench
NAME…`."""
