"""Proofs of memory safety, in a worker that can be stopped."""
