"""Recognise patterns in definitions and states: chains, rows, branches, kernels."""
