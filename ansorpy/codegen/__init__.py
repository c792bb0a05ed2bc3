"""Compile loop programs to machine code: shared passes, and one folder per back end."""
