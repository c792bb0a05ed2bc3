"""Print programs and definitions as text, and convert definitions to JSON and back."""

from __future__ import annotations

__all__: list[str] = []
