"""Supervised worker processes, and machine-wide locks on the devices they use."""

from __future__ import annotations

__all__: list[str] = []
