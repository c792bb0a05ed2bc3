"""The analytic cost model of GPU kernels."""
