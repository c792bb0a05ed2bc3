"""Writing C text, names and index arithmetic, shared by the C and the CUDA C generator."""
