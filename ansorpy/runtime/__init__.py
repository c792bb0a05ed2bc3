"""Compiled programs in memory and in shared libraries: kernels, models, export."""
