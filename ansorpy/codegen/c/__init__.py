"""C11 from any CPU loop program, for compilers and machines that LLVM does not know."""
