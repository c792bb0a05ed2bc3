"""Compiled programs on a GPU: device memory, constants uploaded once, CUDA graphs of launches."""
