"""Build object code, load it into this process, and time it."""
