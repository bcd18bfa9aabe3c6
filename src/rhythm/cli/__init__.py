"""The command line. Each command is a module; only the one that is called is imported."""
