"""Access to a GPU, and compilation with NVRTC, which needs no GPU."""
