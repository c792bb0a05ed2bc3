"""Compile loop programs to object code with LLVM, and load it."""
