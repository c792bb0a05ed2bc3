"""Proofs of memory safety, in a worker that can be stopped."""

from __future__ import annotations

__all__: list[str] = []
