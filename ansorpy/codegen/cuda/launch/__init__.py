"""Launch plans of GPU programs, and the resources that their kernels need."""
