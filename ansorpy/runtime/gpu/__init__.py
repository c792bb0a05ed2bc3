"""Compiled programs on a GPU: memory, constants uploaded once, graphs of launches."""
