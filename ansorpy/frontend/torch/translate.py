"""Translate a graph of ATen operators into an ONNX model, or say why an operator cannot be."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import sympy
import torch
from onnx import ModelProto, ValueInfoProto
from torch.fx import Graph, Node

from ansorpy.frontend.onnx.dim_texts import extent_of as shape_extent
from ansorpy.frontend.onnx.dim_texts import names_in
from ansorpy.frontend.torch.sizes import (
    Size,
    Untranslatable,
    extent_of,
    linear_in,
    symbols_of,
)
from ansorpy.frontend.torch.table import OPERATORS, name_of
from ansorpy.frontend.torch.writer import DTYPES, Operand, Value, Writer, model_of, port
from ansorpy.ir.extents import dim, least

__all__ = ["Input", "Translated", "is_operator", "is_size", "refusal", "returned_by", "translate"]

_MOST = 1 << 31
"""Sizes from here on are no limits."""
_CHECKS = ("_assert_tensor_metadata", "_assert_scalar", "sym_constrain_range")
"""Operators that only check what the guards of torch have ensured."""


@dataclass(frozen=True)
class Input:
    """An input of a translated model: the argument that it takes.

    Args:
        number: That of the argument.
        kind: The argument is a tensor; a number that the input has as its only extent (a size); or
            a number that is the input's only element.
    """

    name: str
    number: int
    kind: Literal["tensor", "size", "number"] = "tensor"


@dataclass(frozen=True)
class Translated:
    """A model for a graph, and which arguments of the graph are its inputs.

    Args:
        dims: The sizes that each dimension of the inputs may have, by name; None for no limit.
    """

    model: ModelProto
    inputs: tuple[Input, ...]
    dims: Mapping[str, tuple[int, int | None]]


def translate(
    graph: Graph, name: str, called: Mapping[str, str] = MappingProxyType({})
) -> Translated:
    """The model that computes what *graph* does.

    Args:
        called: Names of dimensions, where they differ from those of torch's symbols.

    Raises:
        Untranslatable: It has an operator for which :func:`refusal` has a reason, or it needs a
            size that its arguments do not tell.
    """
    writer = Writer()
    known: dict[Node, Any] = {}
    holders = [node for node in graph.nodes if node.op == "placeholder"]
    for node in holders:
        if isinstance(node.meta["val"], torch.Tensor):
            known[node] = _value(node.name, node.meta["val"])
    inputs = _inputs(writer, holders, known)
    for node in graph.nodes:
        if node.op == "call_function":
            try:
                known[node] = _written(writer, node, known)
            except Untranslatable as error:
                raise Untranslatable(str(error), node.name) from None
    outputs = _outputs(writer, [known.get(node) for node in returned_by(graph)])
    read = {name for node in writer.nodes for name in node.input}
    used = [one for one in inputs if one.name in read or one.kind == "tensor"]
    ports = [_port(one, holders[one.number], called) for one in used]
    made = [port(*value._replace(shape=_renamed(value.shape, called))) for value in outputs]
    dims = _dims(holders, used, called)
    return Translated(model_of(name, writer, ports, made), tuple(used), dims)


def _inputs(w: Writer, holders: Sequence[Node], known: Mapping[Node, Value]) -> list[Input]:
    """The inputs of a model whose arguments are *holders*; *w* learns what they tell of sizes."""
    inputs = []
    for number, node in enumerate(holders):
        if node in known:
            inputs.append(Input(node.name, number))
            for axis, extent in enumerate(known[node].shape):
                if not isinstance(extent, int):
                    w.sizes.places.setdefault(extent, (node.name, axis))
    for number, node in enumerate(holders):
        if not is_size(node) or extent_of(node.meta["val"]) in w.sizes.places:
            continue
        extent = extent_of(node.meta["val"])
        if _least(node.meta["val"]) >= 0:
            w.sizes.places[extent] = (node.name, 0)
            inputs.append(Input(node.name, number, "size"))
        else:
            w.sizes.numbers[extent] = node.name
            inputs.append(Input(node.name, number, "number"))
    return inputs


def _port(one: Input, holder: Node, called: Mapping[str, str]) -> ValueInfoProto:
    val = holder.meta["val"]
    if one.kind == "number":
        return port(one.name, torch.int64, [1])
    if one.kind == "size":
        return port(one.name, torch.bool, _renamed([extent_of(val)], called))
    return port(one.name, val.dtype, _renamed([extent_of(size) for size in val.shape], called))


def _renamed(shape: Sequence[Size], called: Mapping[str, str]) -> tuple[Size, ...]:
    """*shape*, where some symbols have other names."""
    names = {symbol: sympy.Symbol(called[str(symbol)])
             for symbol in symbols_of(list(shape)) if str(symbol) in called}  # fmt: skip
    return tuple(e if isinstance(e, int) else e.xreplace(names) for e in shape)


def returned_by(graph: Graph) -> list[Node]:
    """The nodes that *graph* returns: one, or several."""
    [returned] = graph.output_node().args
    return [returned] if isinstance(returned, Node) else list(returned)


def refusal(node: Node) -> str | None:
    """Why the operator of *node* cannot be translated; None if it can."""
    if node.target is operator.getitem:
        return refusal(node.args[0])
    name = name_of(node.target)
    if name not in OPERATORS:
        return "no translation"
    known = {}
    try:
        for operand in node.all_input_nodes:
            known[operand] = _value_of(operand)
        writer = Writer()
        writer.sizes.places = _Anywhere()
        found = _written(writer, node, known)
    except Untranslatable as error:
        return str(error)
    results = found if isinstance(found, tuple) and not isinstance(found, Value) else (found,)
    picked = [user.args[1] for user in node.users if user.target is operator.getitem]
    if any(results[number] is None for number in picked):
        return "a result that only training needs"
    return None


class _Anywhere(dict[Size, tuple[str, int]]):
    """Places of symbols, for a translation whose result is not kept: any input tells any size."""

    def __contains__(self, symbol: object) -> bool:
        return True

    def __missing__(self, symbol: Size) -> tuple[str, int]:
        return ("", 0)


def is_operator(node: Node) -> bool:
    """Whether *node* computes tensors, and is neither a check nor the part of a result."""
    if node.op != "call_function" or is_size(node) or node.target is operator.getitem:
        return False
    return not name_of(node.target).startswith(_CHECKS)


def is_size(node: Node) -> bool:
    """Whether *node* computes a number that calls state, which Python does."""
    return isinstance(node.meta.get("val"), torch.SymInt | int)


def _least(size: Any) -> int:
    if isinstance(size, int):
        return size
    bounds = size.node.shape_env.bound_sympy(size.node.expr)
    return int(bounds.lower) if bounds.lower.is_Integer else -1


def _value(name: str, tensor: torch.Tensor) -> Value:
    """A tensor as an operand; refuses what no compiled code takes."""
    if tensor.dtype not in DTYPES:
        raise Untranslatable(f"element type {tensor.dtype}")
    if tensor.device.type != "cpu":
        raise Untranslatable(f"a tensor on {tensor.device}")
    if tensor.layout is not torch.strided:
        raise Untranslatable(f"a tensor of layout {tensor.layout}")
    shape = tuple(map(extent_of, tensor.shape))
    if any(str(symbol).startswith("u") for symbol in symbols_of(shape)):
        raise Untranslatable("a size that data decide")
    return Value(name, tensor.dtype, shape)


def _value_of(node: Node) -> Any:
    """The operand that *node* is, before anything is written."""
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        return _value(node.name, value)
    if isinstance(value, tuple | list):
        return tuple(_value(node.name, part) for part in value)
    return None


def _written(w: Writer, node: Node, known: Mapping[Node, Any]) -> Any:
    """Write *node*, and return its result, or results."""
    if is_size(node) or name_of(node.target).startswith(_CHECKS):
        return None
    if node.target is operator.getitem:
        return known[node.args[0]][node.args[1]]
    val = node.meta["val"]
    several = isinstance(val, tuple | list)
    w.source = node.name
    w.results = tuple(_value(node.name, part) for part in (val if several else [val]))
    args, kwargs = (_operand(part, known) for part in (node.args, node.kwargs))
    found = OPERATORS[name_of(node.target)](w, *args, **kwargs)
    names = found if isinstance(found, tuple) else (found,)
    values = tuple(
        None if name is None else result._replace(name=name)
        for name, result in zip(names, w.results, strict=True)
    )
    return values if several else values[0]


def _operand(argument: Any, known: Mapping[Node, Any]) -> Any:
    """An argument of a node as a translation takes it."""
    if isinstance(argument, Node):
        return extent_of(argument.meta["val"]) if is_size(argument) else _given(argument, known)
    if isinstance(argument, Mapping):
        return {name: _operand(value, known) for name, value in argument.items()}
    if isinstance(argument, Sequence) and not isinstance(argument, str):
        return [_operand(value, known) for value in argument]
    return argument


def _given(node: Node, known: Mapping[Node, Any]) -> Operand:
    value = known.get(node)
    if not isinstance(value, Value):
        raise Untranslatable(f"the operand {node.name}")
    return value


def _outputs(w: Writer, values: Sequence[Any]) -> list[Value]:
    """The results of a model under names of their own: of the nodes that compute them."""
    found: list[Value] = []
    for value in values:
        if not isinstance(value, Value):
            raise Untranslatable("a result that is no tensor")
        name, _, numbered = value.name.rpartition(".")
        name = name if numbered.isdigit() else f"{value.name}.out"
        while any(name == other.name for other in found):
            name = f"{name}.again"
        w.alias(value.name, name)
        found.append(value._replace(name=name))
    return found


def _dims(
    holders: Sequence[Node], inputs: Sequence[Input], called: Mapping[str, str]
) -> dict[str, tuple[int, int | None]]:
    """The range of each dimension in the shapes of *inputs*.

    They are the symbols; but an extent that cannot be computed from symbols that other extents tell
    is a dimension itself.
    """
    bounds = {
        extent_of(size): size.node.shape_env.bound_sympy
        for one in inputs
        if one.kind != "number"
        for size in _sizes_of(holders[one.number].meta["val"])
        if isinstance(size, torch.SymInt)
    }
    limits = {
        extent: {symbol: _limits(bound(symbol)) for symbol in symbols_of(extent)}
        for extent, bound in bounds.items()
    }
    computed = {extent for extent in limits if _is_size_of(extent, limits[extent])}
    told = {linear[0] for extent in computed if (linear := linear_in(extent)) is not None}
    found: dict[str, tuple[int, int | None]] = {}
    for extent, bound in bounds.items():
        if not (extent in computed and symbols_of(extent) <= told):
            limits[extent] = {extent: _limits(bound(extent))}
        for known, sizes in limits[extent].items():
            [shown] = _renamed([known], called)
            found[str(shown)] = sizes
    return found


def _is_size_of(
    extent: sympy.Expr, limits: Mapping[sympy.Symbol, tuple[int, int | None]]
) -> bool:  # fmt: skip
    """Whether the importer can compute *extent* from its symbols, and sees that it is a size."""
    text = str(extent)
    if names_in(text) is None:
        return False
    sizes = {
        str(symbol): dim(str(symbol), low, max(low, _MOST if high is None else high))
        for symbol, (low, high) in limits.items()
    }
    return least(shape_extent(text, sizes)) >= 0


def _sizes_of(val: Any) -> Sequence[Any]:
    return val.shape if isinstance(val, torch.Tensor) else [val]


def _limits(bounds: Any) -> tuple[int, int | None]:
    """The least and the greatest size within *bounds*; None if that is not known."""
    low, high = bounds.lower, bounds.upper
    limit = int(high) if high.is_Integer and high < sympy.Integer(_MOST) else None
    return max(0, int(low)) if low.is_Integer else 0, limit
