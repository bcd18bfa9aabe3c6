"""The program that every front end compiles to and the interpreter runs: data only, no
behaviour."""
