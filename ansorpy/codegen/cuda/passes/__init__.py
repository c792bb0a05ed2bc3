"""Passes over loop programs before they are emitted as CUDA C."""
