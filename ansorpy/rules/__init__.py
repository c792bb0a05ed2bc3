"""Derivation, annotation and mutation rules, and the presets that order them."""
