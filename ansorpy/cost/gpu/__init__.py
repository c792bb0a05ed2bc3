"""The closed-form cost model of GPU kernels."""
