"""Kernels for all sizes, made of fewer schedules than a user's."""

from __future__ import annotations

import pytest

from ansorpy.api.sized import task_group


@pytest.fixture(autouse=True)
def few_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sizes stand for all: a kernel still dispatches, and runs at sizes between and beyond."""
    monkeypatch.setattr(task_group, "MOST_SIZES", 2)
