"""The command line. Each command is a module; only the module of the called command is imported."""
