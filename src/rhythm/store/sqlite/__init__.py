"""The store on SQLite: one file, one writer at a time, any number of processes."""
