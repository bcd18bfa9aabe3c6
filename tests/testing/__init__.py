"""The testing kit, tested: on memory, SQLite and PostgreSQL."""
