"""Recognising what definitions do: chains, rows, branches, kernels."""

from __future__ import annotations

__all__: list[str] = []
