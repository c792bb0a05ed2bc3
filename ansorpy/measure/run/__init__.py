"""Run, check and time candidates, one at a time."""

from __future__ import annotations

__all__: list[str] = []
