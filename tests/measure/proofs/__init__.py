"""Proofs of chosen programs."""
