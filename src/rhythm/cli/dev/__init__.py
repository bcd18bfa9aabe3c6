"""`rhythm dev`: a parent that watches files, and a process for each generation of the user's code.

The parent never imports the user's code. It holds the socket of the HTTP API and forks a
*generation*: a process that imports the code, and runs a worker and the API. When a file changes,
the next generation is made. Once it has loaded everything, the one before begins nothing more, and
ends when its tasks have. If it cannot be loaded, the one before goes on.
"""
