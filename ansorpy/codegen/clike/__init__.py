"""What the generators of C and of CUDA C share: text, names, index arithmetic."""
