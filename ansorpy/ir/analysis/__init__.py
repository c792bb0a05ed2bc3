"""What programs and definitions read, write and cost, found without running them."""

from __future__ import annotations

__all__: list[str] = []
