"""Vector loops, using the vector extensions of GCC and Clang."""
