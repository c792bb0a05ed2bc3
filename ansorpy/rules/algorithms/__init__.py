"""Algorithms, one file each: ways to rewrite a definition into an equivalent one."""
