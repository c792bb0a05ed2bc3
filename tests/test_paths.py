"""Paths as users give them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansorpy.errors import UsageError
from ansorpy.paths import path_of


def test_text_and_paths_are_paths() -> None:
    assert path_of("a/b.so", "a library") == path_of(Path("a", "b.so"), "a library")


@pytest.mark.parametrize("given", [None, 5, True, b"a.so", ["a.so"]])
def test_what_is_no_path_is_refused(given: object) -> None:
    said = f"^a library is given by its path, not by {type(given).__name__}\nhint: pass text"
    with pytest.raises(UsageError, match=said):
        path_of(given, "a library")
