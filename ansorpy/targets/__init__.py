"""The kinds of machines that can be targets, one module for each backend."""
