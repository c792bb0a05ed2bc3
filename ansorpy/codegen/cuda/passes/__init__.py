"""Passes over loop programs before they are emitted as CUDA C."""

from __future__ import annotations

__all__: list[str] = []
