"""Whatever users can name says what it is, and is typed."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import ansorpy as ap
from ansorpy.evaluation.bench.result import Comparison, SizesComparison
from ansorpy.evaluation.verify import Verification
from ansorpy.trace import Trace

RETURNED = (Verification, Comparison, SizesComparison, Trace)
"""Classes of what the functions return, besides those in ``NAMED``."""
NAMED = [value for name in ap.__all__ if inspect.isclass(value := getattr(ap, name))]


def members(kind: type) -> Iterator[tuple[str, object]]:
    """The public methods and properties that *kind* itself defines."""
    for name, member in vars(kind).items():
        if isinstance(member, staticmethod | classmethod):
            member = member.__func__
        if not name.startswith("_") and (
            inspect.isfunction(member) or isinstance(member, property)
        ):
            yield name, member


@pytest.mark.parametrize("name", ap.__all__)
def test_every_name_has_a_docstring(name: str) -> None:
    assert name == "PARTS" or inspect.getdoc(getattr(ap, name))


@pytest.mark.parametrize("kind", dict.fromkeys([*NAMED, *RETURNED]), ids=lambda kind: kind.__name__)
def test_methods_are_typed_and_have_docstrings(kind: type) -> None:
    for name, member in members(kind):
        assert inspect.getdoc(member), f"{kind.__name__}.{name}"
        function = member.fget if isinstance(member, property) else member
        assert callable(function) and "return" in function.__annotations__, name


def test_functions_are_typed() -> None:
    for name in ap.__all__:
        value = getattr(ap, name)
        if inspect.isfunction(value):
            parameters = inspect.signature(value).parameters.values()
            # As written: evaluated aliases, such as numpy's ArrayLike, fill a screen of help().
            assert all(isinstance(p.annotation, str) and p.annotation for p in parameters), name
            assert "return" in value.__annotations__, name


def test_functions_know_their_names() -> None:
    """The reference finds them by these."""
    functions = {
        name: value for name in ap.__all__ if inspect.isfunction(value := getattr(ap, name))
    }
    assert [*functions] == [value.__qualname__ for value in functions.values()]


def test_options_have_their_types_in_help() -> None:
    found = inspect.signature(ap.compile).parameters
    assert found["dims"].annotation == "Mapping[str, AnySize] | None"
    assert found["progress"].annotation == "Shown"


def test_type_checkers_are_told() -> None:
    assert Path(ap.__file__).with_name("py.typed").exists()
