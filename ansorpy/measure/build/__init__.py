"""Build candidates in worker processes."""
