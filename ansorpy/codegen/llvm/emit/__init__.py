"""Emit loop programs as LLVM IR."""
