"""Check GPU candidates and time them with CUDA events, in a worker process that owns the device."""
