"""The thread team of parallel loops, as compiled code."""
