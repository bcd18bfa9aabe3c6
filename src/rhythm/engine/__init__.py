"""What is durable, decided without I/O and carried out through the store."""
