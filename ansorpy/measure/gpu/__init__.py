"""Check and time candidates for GPUs, by CUDA events, in a worker process that owns the device."""
