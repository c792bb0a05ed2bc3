"""Vector loops in the vector extensions of GCC and Clang."""
