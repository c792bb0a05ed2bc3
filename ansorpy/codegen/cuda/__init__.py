"""Generate CUDA C from loop programs and compile it to cubins."""
