from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import ansorpy.ir

MODULES = [m.name for m in pkgutil.walk_packages(ansorpy.ir.__path__, "ansorpy.ir.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_there_are_examples() -> None:
    found = [doctest.DocTestFinder().find(importlib.import_module(name)) for name in MODULES]
    assert sum(bool(test.examples) for tests in found for test in tests) >= 8
