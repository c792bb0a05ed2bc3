"""Emit loop programs as CUDA C."""
