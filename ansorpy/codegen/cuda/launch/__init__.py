"""Launch plans: which kernels run, with which resources."""

from __future__ import annotations

__all__: list[str] = []
