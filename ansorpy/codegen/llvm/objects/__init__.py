"""Build object code, load it into this process, and time it."""

from __future__ import annotations

__all__: list[str] = []
