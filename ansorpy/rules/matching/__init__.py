"""Recognise patterns in definitions and states: chains, rows, branches, kernels."""

from __future__ import annotations

__all__: list[str] = []
