"""The commands, one module each: its help page (the docstring), its options, and its function."""
