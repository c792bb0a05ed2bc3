"""Arguments are declared once: signatures, docstrings and defaults follow."""

from __future__ import annotations

import inspect
from typing import Annotated, Any, TypedDict, Unpack

import pytest

from ansorpy.errors import UsageError
from ansorpy.options import (
    Option,
    completed,
    declared,
    stated,
    those,
    values_by_name,
    with_arguments,
)


class Sizes(TypedDict, total=False):
    """Arguments for a test."""

    width: Annotated[int, Option("How wide it is.", default=3, least=1)]
    tall_name: Annotated[str | None, Option("A name. " + "Long " * 30, flag="--tall")]


class More(Sizes, total=False):
    """The same and another, of a type that only type checkers know."""

    odd: Annotated[Unknown | None, Option("Odd.")]  # type: ignore[name-defined]  # noqa: F821


@with_arguments
def area(height: int, **arguments: Unpack[Sizes]) -> int:
    """The area.

    Args:
        height: How high.
        **arguments

    Raises:
        Nothing.
    """
    return height * arguments.get("width", 3)


def test_declared_arguments_know_their_flags_and_defaults() -> None:
    width, name, odd = declared(More)
    assert (width.flag, name.flag, odd.flag) == ("--width", "--tall", "--odd")
    assert width.kind is int and name.kind == str | None and "Unknown" in str(odd.kind)


def test_a_function_shows_what_it_takes() -> None:
    parameters = inspect.signature(area).parameters
    assert list(parameters) == ["height", "width", "tall_name"]
    assert parameters["width"].default == 3 and parameters["width"].annotation == "int"
    assert area(2) == 6 and area(2, width=5) == 10
    doc = inspect.getdoc(area) or ""
    assert "    width: How wide it is.\n    tall_name: A name. Long" in doc
    assert "**arguments" not in doc and max(map(len, doc.splitlines())) <= 100


def test_a_function_refuses_what_it_does_not_take() -> None:
    unknown: dict[str, Any] = {"depth": 1}
    with pytest.raises(UsageError, match='no option "depth"(.|\n)*height, width, tall_name'):
        area(2, **unknown)


def test_given_arguments_are_completed_split_and_checked() -> None:
    assert completed(Sizes, {"width": 1}) == {"width": 1, "tall_name": None}
    assert those(Sizes, {"width": 1, "other": 2}) == {"width": 1}
    given = {"width": 3, "tall_name": "x", "other": 2}
    assert [argument.name for argument in stated(Sizes, given)] == ["tall_name"]
    with pytest.raises(UsageError, match='no option "depth"(.|\n)*width, tall_name'):
        completed(Sizes, {"depth": 1})


def test_a_name_has_one_value() -> None:
    def parsed(item: str) -> tuple[str, int]:
        name, _, value = item.partition("=")
        return name, int(value)

    assert values_by_name("--size", ["a=1", "b=2", "a=1"], parsed) == {"a": 1, "b": 2}
    with pytest.raises(UsageError, match="^--size a=1 and --size a=2 contradict each other\nhint"):
        values_by_name("--size", ["a=1", "b=2", "a=2"], parsed)
