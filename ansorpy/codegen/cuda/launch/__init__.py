"""Launch plans of GPU programs, and the resources that their kernels need."""

from __future__ import annotations

__all__: list[str] = []
