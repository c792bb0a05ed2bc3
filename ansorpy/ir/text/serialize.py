"""Convert a compute DAG to plain JSON data and back, and hash its structure.

The data are ``{"format", "version", "ops", "args", "outputs"}`` and, if some tensors are not
dense, ``"strides"`` by op number.  An op lists its expression as rows ``[kind, ...]``, operands
before users, each distinct sub-expression once; operands are row numbers, tensors op numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import (
    Axis,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Reduce,
    Select,
    SizeVar,
)
from ansorpy.ir.extents import dim_extent
from ansorpy.ir.rewrite.sizes import dag_at
from ansorpy.ir.tensor import ComputeOp, PlaceholderOp, Tensor
from ansorpy.ir.text.extents import dim_data, extent_data
from ansorpy.ir.text.parse_dag import FORMAT, VERSION, dag_from_dict, dag_from_json

__all__ = ["dag_from_dict", "dag_from_json", "dag_to_dict", "dag_to_json", "structural_hash"]


def dag_to_dict(dag: ComputeDAG) -> dict[str, Any]:
    """*dag* as JSON-serializable data; floats are hexadecimal, so they are restored bit for bit.

    Raises:
        ValueError: A definition uses a free variable, or an attribute that is not plain data.
    """
    return _encode(dag, names=True)


def dag_to_json(dag: ComputeDAG) -> str:
    """*dag* as canonical JSON text; equal texts are equal definitions, names included.

    Raises:
        ValueError: As :func:`dag_to_dict`.
    """
    return _json(dag_to_dict(dag))


def structural_hash(dag: ComputeDAG) -> str:
    """32 hexadecimal digits, equal for DAGs that differ only in names.

    They depend on shapes, strides, types, constant flags, attributes, and the order of arguments
    and outputs.
    """
    numbered = {
        dim: dim_extent(replace(dim, name=f"dimension {n}")) for n, dim in enumerate(dag.dims)
    }
    text = _json(_encode(dag_at(dag, numbered), names=False))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _json(data: Mapping[str, Any]) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def _encode(dag: ComputeDAG, *, names: bool) -> dict[str, Any]:
    numbers = {op: n for n, op in enumerate(dag.ops)}
    apart = {
        str(n): [extent_data(step) for step in dag.strides[op.name]]
        for op, n in numbers.items()
        if op.name in dag.strides
    }
    return {
        "format": FORMAT,
        "version": VERSION,
        "ops": [_encode_op(op, numbers, names) for op in numbers],
        "args": [numbers[op] for op in dag.args],
        "outputs": [numbers[op] for op in dag.outputs],
        **({"strides": apart} if apart else {}),
    }


def _encode_op(op: Tensor, numbers: Mapping[Tensor, int], names: bool) -> dict[str, Any]:
    data: dict[str, Any] = {"shape": list(map(extent_data, op.shape))}
    if names:
        data["name"] = op.name
    if isinstance(op, PlaceholderOp):
        return data | {"kind": "placeholder", "dtype": op.dtype.value, "constant": op.constant}
    if not isinstance(op, ComputeOp):
        raise TypeError(f"{type(op).__name__} is neither a placeholder nor a compute")
    rows = _Rows(op, numbers)
    data |= {"kind": "compute", "body": rows.number(op.body), "rows": rows.rows}
    data["reduce"] = [extent_data(axis.extent) for axis in op.reduce_axes]
    axes = [axis.name for axis in (*op.axes, *op.reduce_axes)]
    if names:
        data["axes"] = axes
    labels = {} if names else {name: f"axis {n}" for n, name in enumerate(axes)}
    if op.routine is not None:
        data["routine"] = [op.routine.name, op.routine.settings]
    data["attrs"] = {key: _plain(value, labels) for key, value in op.attrs.stated().items()}
    return data


def _plain(value: Any, labels: Mapping[str, str]) -> Any:
    """An attribute as JSON data; names of axes are replaced by *labels*."""
    return [labels.get(name, name) for name in value] if isinstance(value, tuple) else value


class _Rows:
    """Numbers the distinct sub-expressions of one op, operands first."""

    def __init__(self, op: ComputeOp, tensors: Mapping[Tensor, int]):
        self.rows: list[list[Any]] = []
        self._op = op
        self._tensors = tensors
        self._axes = {axis: n for n, axis in enumerate((*op.axes, *op.reduce_axes))}
        self._by_node: dict[Expr, int] = {}
        self._by_row: dict[tuple[Any, ...], int] = {}

    def number(self, e: Expr) -> int:
        found = self._by_node.get(e)
        if found is None:
            row = self._row(e)
            found = self._by_row.setdefault(tuple(row), len(self.rows))
            if found == len(self.rows):
                self.rows.append(row)
            self._by_node[e] = found
        return found

    def _leaf(self, e: Axis | SizeVar | Const) -> list[Any]:
        if isinstance(e, SizeVar):
            return ["size", *dim_data(e.dim)]
        if isinstance(e, Const):
            text = float(e.value).hex() if e.type.is_float else int(e.value)
            return ["const", e.type.value, text]
        if e not in self._axes:
            raise ValueError(f"{self._op.name} uses {e.name}, an axis bound nowhere in it")
        return ["axis", self._axes[e]]

    def _row(self, e: Expr) -> list[Any]:
        match e:
            case Axis() | SizeVar() | Const():
                return self._leaf(e)
            case Binary(op, a, b):
                return ["binary", op.value, self.number(a), self.number(b)]
            case Compare(cmp, a, b):
                return ["compare", cmp.value, self.number(a), self.number(b)]
            case Call(fn, args):
                return ["call", fn.value, *map(self.number, args)]
            case Select(cond, then, other):
                return ["select", *map(self.number, (cond, then, other))]
            case Cast(to, x):
                return ["cast", to.value, self.number(x)]
            case Load(source, indices) if isinstance(source, Tensor):
                return ["load", self._tensors[source], *map(self.number, indices)]
            case Reduce(kind, source, _):
                return ["reduce", kind.value, self.number(source)]
            case _:
                raise ValueError(f"{self._op.name} uses a {type(e).__name__} bound nowhere in it")
