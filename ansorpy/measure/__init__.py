"""Build, run and time candidates in worker processes, and record the results in a database."""
