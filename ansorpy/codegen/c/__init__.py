"""Generate C11 from any CPU loop program, for machines that LLVM does not support."""
