"""CUDA C from loop programs, and cubins from it."""
