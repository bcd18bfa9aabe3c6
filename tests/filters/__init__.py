"""The filter language: reading and printing are inverse, and every mistake says what to do."""
