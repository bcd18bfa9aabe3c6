"""The store on SQLite: one file, one writer at a time, as many processes as you like."""
