"""The Python interface; its functions are in :mod:`networks` and :mod:`operators`."""
