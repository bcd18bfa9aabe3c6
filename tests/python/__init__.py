"""Python workflows: compared with CPython itself, and what is refused."""
