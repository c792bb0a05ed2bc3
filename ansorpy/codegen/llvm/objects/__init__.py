"""Object code: built, loaded into this process, timed."""

from __future__ import annotations

__all__: list[str] = []
