"""Extents as C expressions of the sizes of a call."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from ansorpy.ir.extents import AnyExtent, Extent, Form
from ansorpy.ir.symbols import Dim, SizeOp
from ansorpy.runtime.sizes import Told

__all__ = ["c_count", "c_extent", "c_told", "helpers", "size_names"]

_FUNCTIONS = {SizeOp.FLOORDIV: "size_quotient", SizeOp.MIN: "size_least", SizeOp.MAX: "size_most"}
_HELPERS = {
    "size_quotient": "a / b - (a % b < 0)",  # divisors are positive
    "size_least": "a < b ? a : b",
    "size_most": "a > b ? a : b",
}


def size_names(dims: Iterable[Dim]) -> dict[Dim, str]:
    """The variable of each of *dims*, whose own names may be anything."""
    return {dim: f"size{n}" for n, dim in enumerate(dims)}


def c_extent(extent: Extent, names: Mapping[Dim, str]) -> str:
    """*extent* as an expression of the variables *names*, of type int64_t unless it is a number."""
    if isinstance(extent, int):
        return str(extent)
    terms = []
    for atoms, c in extent.terms:
        factors = [names[a] if isinstance(a, Dim) else _form(a, names) for a in atoms]
        terms.append(" * ".join([*factors, *([f"({c})" if c < 0 else str(c)] if c != 1 or not atoms
                                             else [])]))  # fmt: skip
    return " + ".join(terms)


def _form(form: Form, names: Mapping[Dim, str]) -> str:
    a, b = c_extent(form.a, names), c_extent(form.b, names)
    return f"{_FUNCTIONS[form.op]}({a}, {b})"


def c_count(shape: Sequence[AnyExtent], names: Mapping[Dim, str]) -> str:
    """The number of elements of *shape* as an expression."""
    if all(isinstance(extent, int) for extent in shape):
        return str(math.prod(shape))
    return " * ".join(f"({c_extent(extent, names)})" for extent in shape)


def c_told(told: Told) -> str:
    """The size of a dimension, read off the tensors ``inputs``, whatever shapes these state."""
    given = f"inputs[{told.number}].shape[{told.axis}]"
    offset = f"UINT64_C({told.offset % (1 << 64)})"
    if told.scale == -1:  # INT64_MIN has no quotient by -1
        return f"(int64_t)({offset} - (uint64_t){given})"
    if told.offset:
        given = f"(int64_t)((uint64_t){given} - {offset})"
    return given if told.scale == 1 else f"{given} / ({told.scale})"


def helpers(code: str) -> list[str]:
    """Definitions of the functions that the expressions in *code* call."""
    return [
        f"static int64_t {name}(int64_t a, int64_t b) {{ return {value}; }}"
        for name, value in _HELPERS.items()
        if f"{name}(" in code
    ]
