"""`python -m rhythm`: the command line."""

from rhythm.cli.main import main

raise SystemExit(main())
