"""Tests that need NVRTC: skipped where it is not installed, unless REQUIRE_NVRTC is set (CI)."""

from __future__ import annotations

import importlib.util
import os

import pytest

__all__ = ["needs_nvrtc"]

_MISSING = importlib.util.find_spec("cupy") is None and not os.environ.get("REQUIRE_NVRTC")

needs_nvrtc = pytest.mark.skipif(
    _MISSING, reason="cupy is not installed: pip install 'ansorpy[cuda]'"
)
