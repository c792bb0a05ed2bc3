"""What users can name stays, unless a change to it is accepted here."""

from __future__ import annotations

from collections.abc import Callable

from tests.regression.capabilities import capabilities


def test_capabilities(golden: Callable[[str], None]) -> None:
    golden(capabilities())
