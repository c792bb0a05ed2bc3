"""Every call of the GPU's driver and every way to run there, once, on tiny problems."""
