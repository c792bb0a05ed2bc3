"""Sizes of an ATen graph: expressions of torch's symbols, as values that ONNX nodes compute."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import sympy
import torch
from torch.utils._sympy.functions import (
    CleanDiv,
    FloorDiv,
    Max,
    Min,
    Mod,
    PythonMod,
)

__all__ = ["Size", "SizeWriter", "Untranslatable", "extent_of", "larger", "linear_in", "symbols_of"]

Size: TypeAlias = int | sympy.Expr
"""An extent: a number, or an expression of torch's symbols."""


class Untranslatable(Exception):
    """ONNX has nothing for an operator as it is used; says what, and at which *node*."""

    def __init__(self, reason: str, node: str = "") -> None:
        super().__init__(reason)
        self.node = node


def extent_of(size: Any) -> Size:
    """A size of torch as a number, or as an expression of symbols."""
    if isinstance(size, int):
        return size
    if isinstance(size, torch.SymInt):
        expr = size.node.expr
        return int(expr) if expr.is_number else expr
    raise Untranslatable(f"{size} is no size")


def symbols_of(value: object) -> set[sympy.Symbol]:
    """The symbols in a size, a shape, or nested lists of these."""
    if isinstance(value, sympy.Expr):
        return set(value.free_symbols)
    if isinstance(value, tuple | list):
        return set().union(*map(symbols_of, value))
    return set()


def larger(a: Size, b: Size) -> Size:
    """The larger one of two sizes."""
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else Max(a, b)


def linear_in(extent: Size) -> tuple[sympy.Symbol, int, int] | None:
    """The only symbol of *extent*, and what it is multiplied by and what is added; None if it is
    not linear in one symbol."""
    symbols = symbols_of(extent)
    if isinstance(extent, int) or len(symbols) != 1:
        return None
    [symbol] = symbols
    scale = extent.coeff(symbol)
    offset = extent - scale * symbol
    return (symbol, int(scale), int(offset)) if scale.is_Integer and offset.is_Integer else None


_FOLDED: dict[type, str] = {sympy.Add: "Add", sympy.Mul: "Mul", Max: "Max", Min: "Min"}
_BINARY: dict[type, str] = {CleanDiv: "Div", Mod: "Mod", PythonMod: "Mod"}


class SizeWriter:
    """Writes size expressions as nodes; ``places`` has an input and its axis for some of them.

    ``numbers`` has inputs for others, which may be below 0 and therefore are no sizes.

    Args:
        op: Writes a node, and returns its output.
        constant: Adds a constant, and returns its name.
    """

    def __init__(self, op: Callable[..., str], constant: Callable[[Any], str]) -> None:
        self._op, self._constant = op, constant
        self.places: dict[Size, tuple[str, int]] = {}
        self.numbers: dict[Size, str] = {}
        self._known: dict[Size, str] = {}

    def number(self, extent: Size) -> str:
        """As :meth:`vector`; *extent* is no size, so that it may be a number from the caller."""
        return self.numbers.get(extent) or self.vector(extent)

    def vector(self, extent: Size) -> str:
        """A vector of int64 whose only element is *extent*."""
        if extent not in self._known:
            self._known[extent] = self._written(extent)
        return self._known[extent]

    def _written(self, extent: Size) -> str:
        if isinstance(extent, int | sympy.Integer):
            return self._constant(np.asarray([int(extent)], np.int64))
        if extent in self.places:
            name, axis = self.places[extent]
            return self._op("Shape", name, start=axis, end=axis + 1)
        if isinstance(extent, sympy.Symbol):
            raise Untranslatable(f"the number {extent} is the size of no tensor")
        kind = type(extent)
        if kind is sympy.Mul and (below := sympy.denom(extent)) != 1:
            return self._op("Div", self.vector(sympy.numer(extent)), self.vector(below))
        if kind in _FOLDED:
            return reduce(lambda a, b: self._op(_FOLDED[kind], a, b), map(self.vector, extent.args))
        if kind in _BINARY:
            return self._op(_BINARY[kind], *map(self.vector, extent.args))
        if kind is FloorDiv:
            a, b = map(self.vector, extent.args)
            if not extent.base.is_nonnegative:  # ONNX rounds quotients of integers towards 0
                a = self._op("Sub", a, self._op("Mod", a, b))
            return self._op("Div", a, b)
        if isinstance(extent, sympy.Pow) and extent.exp.is_Integer and extent.exp > 0:
            return reduce(
                lambda a, b: self._op("Mul", a, b), [self.vector(extent.base)] * int(extent.exp)
            )
        raise Untranslatable(f"the size {extent}")
