"""Programs in C: compiled and run here, or written as C files with a header."""
