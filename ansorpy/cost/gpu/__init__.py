"""The closed-form model of GPU kernels."""
