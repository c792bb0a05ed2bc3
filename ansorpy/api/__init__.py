"""The Python interface: :mod:`networks` and :mod:`operators` have its functions."""
