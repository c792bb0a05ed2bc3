"""Read a compute DAG from untrusted JSON data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar

from ansorpy.errors import ForeignFile, UsageError
from ansorpy.ir.attrs import Attrs
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import (
    Axis,
    AxisKind,
    Binary,
    BinaryOp,
    Call,
    Cast,
    Compare,
    CompareOp,
    Const,
    Expr,
    Function,
    Load,
    Reduce,
    ReduceKind,
    Select,
    size_var,
)
from ansorpy.ir.extents import Extent, least
from ansorpy.ir.operands import misfit
from ansorpy.ir.routines.base import Routine
from ansorpy.ir.routines.table import routine_of
from ansorpy.ir.strides import Strides
from ansorpy.ir.tensor import ComputeOp, PlaceholderOp, Tensor
from ansorpy.ir.text.extents import dim_of, extent_of

__all__ = ["FORMAT", "VERSION", "dag_from_dict", "dag_from_json"]

FORMAT, VERSION = "ansorpy-dag", 1
E = TypeVar("E", bound=Enum)
T = TypeVar("T")


class _Bad(Exception):
    """A problem with the data, in a few words."""


def dag_from_json(text: str | bytes) -> ComputeDAG:
    """The DAG that :func:`~ansorpy.ir.text.serialize.dag_to_json` wrote.

    Raises:
        ForeignFile: As :func:`dag_from_dict`.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise _foreign(problem) from None
    return dag_from_dict(data)


def dag_from_dict(data: object) -> ComputeDAG:
    """The DAG that :func:`~ansorpy.ir.text.serialize.dag_to_dict` wrote.

    Raises:
        ForeignFile: *data* is not such a description, or has another version.
    """
    try:
        return _parse(_mapping(data))
    except (_Bad, UsageError, ValueError, RecursionError) as problem:
        raise _foreign(problem) from None


def _foreign(problem: Exception) -> ForeignFile:
    return ForeignFile(
        f"not a description of a compute DAG: {problem}",
        hint="it was written by another program or version; tune the operator again",
    )


def _parse(data: Mapping[str, Any]) -> ComputeDAG:
    if data.get("format") != FORMAT or data.get("version") != VERSION:
        raise _Bad(f"format {data.get('format')!r}, version {data.get('version')!r}")
    ops: list[Tensor] = []
    for entry in _list(_get(data, "ops")):
        ops.append(_op(_mapping(entry), ops))
    args = [_item(ops, n) for n in _list(_get(data, "args"))]
    outputs = [_item(ops, n) for n in _list(_get(data, "outputs"))]
    if not outputs or not all(isinstance(op, ComputeOp) for op in outputs):
        raise _Bad("the outputs must be computes, at least one")
    placeholders = [op for op in args if isinstance(op, PlaceholderOp)]
    if len(placeholders) != len(args):
        raise _Bad("an argument is not a placeholder")
    return ComputeDAG(outputs, placeholders, _strides(data.get("strides", {}), ops))


def _strides(data: object, ops: Sequence[Tensor]) -> dict[str, Strides]:
    found = {}
    for number, steps in _mapping(data).items():
        if not isinstance(number, str) or not number.isdecimal():
            raise _Bad(f"strides of {number!r}")
        found[_item(ops, int(number)).name] = _extents(steps)
    return found


def _op(entry: Mapping[str, Any], before: Sequence[Tensor]) -> Tensor:
    name = _get(entry, "name")
    if not isinstance(name, str):
        raise _Bad(f"an op is named {name!r}")
    shape = _extents(_get(entry, "shape"))
    if entry.get("kind") == "placeholder":
        constant = _get(entry, "constant")
        if not isinstance(constant, bool):
            raise _Bad(f"{name}: constant is {constant!r}")
        return PlaceholderOp(name, shape, _enum(DType, _get(entry, "dtype")), constant)
    if entry.get("kind") != "compute":
        raise _Bad(f"{name} is a {entry.get('kind')!r}")
    reduce = _extents(_get(entry, "reduce"))
    names = _list(_get(entry, "axes"))
    if not _are_names(names, len(shape) + len(reduce)):
        raise _Bad(f"{name}: axis names {names!r}")
    axes = tuple(Axis(n, e, AxisKind.SPACE) for n, e in zip(names, shape, strict=False))
    over = tuple(
        Axis(n, e, AxisKind.REDUCE) for n, e in zip(names[len(shape) :], reduce, strict=True)
    )
    rows = _RowReader(name, (*axes, *over), over, before)
    body = rows.read(_list(_get(entry, "rows")), _get(entry, "body"))
    attrs = _attrs(name, _mapping(_get(entry, "attrs")))
    return ComputeOp(name, shape, axes, over, body, attrs, _routine(entry.get("routine")))


def _routine(data: object) -> Routine | None:
    match data:
        case None:
            return None
        case [str() as name, dict() as settings]:
            return routine_of(name, settings)
    raise _Bad(f"a routine is {data!r:.40}")


def _attrs(name: str, given: Mapping[str, Any]) -> Attrs:
    try:
        return Attrs(**given)
    except (TypeError, ValueError) as error:
        raise _Bad(f"{name}: attributes {given!r}: {error}") from None


def _are_names(names: Sequence[object], count: int) -> bool:
    return all(isinstance(n, str) for n in names) and len(names) == len(set(names)) == count


class _RowReader:
    """Builds the expressions of one op row by row."""

    def __init__(
        self, name: str, axes: Sequence[Axis], over: tuple[Axis, ...], tensors: Sequence[Tensor]
    ):
        self.name = name
        self.axes = axes
        self.over = over
        self.tensors = tensors
        self.done: list[Expr] = []

    def read(self, rows: Sequence[Any], body: object) -> Expr:
        for row in rows:
            made = self._made(row)
            problem = misfit(made)
            if problem is not None:
                raise _Bad(f"{self.name}: {problem}")
            self.done.append(made)
        found = self._operand(body)
        if any(isinstance(e, Reduce) and e is not found for e in self.done):
            raise _Bad(f"{self.name}: a reduction must be the whole body")
        if isinstance(found, Reduce) is not bool(self.over):
            raise _Bad(f"{self.name}: reduce axes and a reduction go together")
        return found

    def _made(self, row: object) -> Expr:
        match row:
            case ["axis" | "size" | "const", *_]:
                return self._leaf(row)
            case ["binary", op, a, b]:
                return Binary(_enum(BinaryOp, op), self._operand(a), self._operand(b))
            case ["compare", op, a, b]:
                return Compare(_enum(CompareOp, op), self._operand(a), self._operand(b))
            case ["call", fn, *args]:
                return Call(_enum(Function, fn), self._operands(args))
            case ["select", cond, then, other]:
                return Select(*self._operands([cond, then, other]))
            case ["cast", to, x]:
                return Cast(_enum(DType, to), self._operand(x))
            case ["load", tensor, *indices]:
                return Load(_item(self.tensors, tensor), self._operands(indices))
            case ["reduce", kind, source]:
                return Reduce(_enum(ReduceKind, kind), self._operand(source), self.over)
            case _:
                raise _Bad(f"{self.name}: malformed row {row!r:.40}")

    def _leaf(self, row: Sequence[object]) -> Expr:
        match row:
            case ["axis", n]:
                return _item(self.axes, n)
            case ["size", *dim]:
                return size_var(dim_of(dim))
            case ["const", dtype, value]:
                return self._const(_enum(DType, dtype), value)
        raise _Bad(f"{self.name}: malformed row {row!r:.40}")

    def _const(self, kind: DType, value: object) -> Expr:
        if kind.is_float and isinstance(value, str):
            return Const(_float(value), kind)
        if kind.is_float or type(value) is not int or not kind.holds(value):
            raise _Bad(f"{self.name}: constant {value!r} of type {kind.value}")
        return Const(bool(value) if kind is DType.BOOL else value, kind)

    def _operands(self, numbers: Sequence[object]) -> tuple[Expr, ...]:
        return tuple(map(self._operand, numbers))

    def _operand(self, n: object) -> Expr:
        return _item(self.done, n)


def _float(text: str) -> float:
    try:
        return float.fromhex(text)
    except (ValueError, OverflowError):
        raise _Bad(f"{text!r:.40} is not a float") from None


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _Bad(f"expected an object, found {value!r:.40}")
    return value


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise _Bad(f"expected a list, found {value!r:.40}")
    return value


def _get(entry: Mapping[str, Any], key: str) -> Any:
    if key not in entry:
        raise _Bad(f"{key!r} is missing")
    return entry[key]


def _item(items: Sequence[T], n: object) -> T:
    if type(n) is not int or not 0 <= n < len(items):
        raise _Bad(f"reference {n!r} to one of {len(items)}")
    return items[n]


def _extents(value: object) -> tuple[Extent, ...]:
    extents = tuple(map(extent_of, _list(value)))
    if any(least(e) < (1 if isinstance(e, int) else 0) for e in extents):
        raise _Bad(f"extents {extents!r}")
    return extents


def _enum(kind: type[E], value: object) -> E:
    try:
        return kind(value)
    except ValueError:
        raise _Bad(f"{value!r} is not of type {kind.__name__}") from None
