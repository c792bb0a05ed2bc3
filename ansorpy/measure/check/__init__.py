"""Whether a candidate's output is right."""

from __future__ import annotations

__all__: list[str] = []
