"""Networks with a dimension of any size: beside peers, and beside libraries for one size."""
