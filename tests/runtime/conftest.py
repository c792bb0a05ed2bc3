"""Kernels for all sizes, made of fewer schedules than a user's."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def two_sizes(few_sizes: None) -> None:
    """A kernel still dispatches, and runs at sizes between and beyond."""
