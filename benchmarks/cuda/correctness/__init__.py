"""Programs and networks on a GPU, compared with what this machine's CPU computes."""
