"""Lowering for GPU blocks: launches, barriers, pipelines, shared sums and fragments."""

from __future__ import annotations

__all__: list[str] = []
