"""Import of ONNX models as network graphs with typed shapes and folded constants."""

from __future__ import annotations

import logging
from collections import ChainMap
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from math import prod

import onnx
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    ValueInfoProto,
)

from ansorpy.constants import constant_flags
from ansorpy.errors import UnsupportedModel, UnsupportedRow
from ansorpy.frontend.onnx.context import (
    NodeContext,
    TooLarge,
    TooShort,
    Unequal,
    Unknown,
    Unsupported,
    dtype_of,
    one_size,
)
from ansorpy.frontend.onnx.elements import Elements
from ansorpy.frontend.onnx.equations import lengthened, solved
from ansorpy.frontend.onnx.nodes import needed
from ansorpy.frontend.onnx.quantized.narrow import (
    NarrowArray,
    is_narrow,
    narrow_constant,
    narrow_type,
    refused,
)
from ansorpy.frontend.onnx.ratio import Ratio
from ansorpy.frontend.onnx.reader import (
    array_of,
    demand_computed,
    demand_consistent,
    opset_of,
)
from ansorpy.frontend.onnx.reference import reference_values
from ansorpy.frontend.onnx.registry import ON_SHAPES, OPERATORS, STANDARD, operator_of
from ansorpy.frontend.onnx.result_types import inferred_types, stated_types
from ansorpy.frontend.onnx.shapes import InputShapes, network_inputs
from ansorpy.graph.constants import constant_values
from ansorpy.graph.ir import Array, Graph, GraphBuilder, LargeConstant, Output, require_small
from ansorpy.graph.ops import Shape, TensorType
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import Extent, dims_of, least, most
from ansorpy.ir.symbols import Dim

__all__ = ["Importer", "Solved", "has_importer", "is_known"]

_LOG = logging.getLogger(__name__)
_RANDOM = frozenset({"Bernoulli", "Multinomial", "RandomNormalLike", "RandomUniformLike"})
_IF = "If"
_UNKNOWN = "ansorpy does not have it; export the model without it"
_LARGEST_OPERAND = 1 << 10
"""Elements of constants that may determine a shape."""


class Solved(Exception):
    """An operator needs a dimension to be an extent of others."""

    def __init__(self, dim: Dim, extent: Extent):
        super().__init__(dim, extent)
        self.dim, self.extent = dim, extent


def has_importer(node: NodeProto) -> bool:
    """Whether *node* is translated by its operator's importer, or as a branch."""
    return operator_of(node) in {*OPERATORS, _IF}


def is_known(node: NodeProto) -> bool:
    """Whether onnx knows the operator of *node*, or an importer does."""
    domain = "" if node.domain in STANDARD else node.domain
    return has_importer(node) or bool(onnx.defs.has(node.op_type, domain))


class Importer:
    """The state of one import: values so far, and table rows for unsupported nodes and tensors."""

    def __init__(self, model: ModelProto, inputs: InputShapes):
        self.model = model
        self.opset = opset_of(model)
        self.builder = GraphBuilder()
        self.values: MutableMapping[str, str] = {}
        self.narrow: MutableMapping[str, NarrowArray] = {}
        self.known: dict[str, Elements] = {}
        self.rows: list[UnsupportedRow] = []
        self.used: frozenset[str] = frozenset()
        self._free = inputs.free
        self._add_inputs(inputs.shapes)

    def run(self) -> Graph:
        self._import_all(self.model.graph)
        for output in self.model.graph.output:
            self._refuse_output(output)
        if self.rows:
            raise UnsupportedModel(
                f"{len(self.rows)} node(s) of the model cannot be compiled",
                rows=_grouped(self.rows),
                hint="change these nodes in the exporting program, or remove them from the model",
            )
        outputs = [o.name for o in self.model.graph.output]
        demand_computed(outputs, self.values)
        return self.builder.finish(Output(name, self.values[name]) for name in outputs)

    def _refuse_output(self, output: ValueInfoProto) -> None:
        """Add a row for *output* if it is a narrow constant or does not have the declared type."""
        if output.name in self.narrow:
            array = self.narrow[output.name]
            self._blame(output.name, "output", array.shape, refused(array))
        elif output.name in self.values:
            made = self.builder.types[self.values[output.name]]
            declared = self._declared(output, "output", made.shape)
            if declared is not None and declared is not made.dtype:
                advice = f"the nodes give {made.dtype.value}"
                reason = Unsupported(f"element type {declared.value}", advice)
                self._blame(output.name, "output", made.shape, reason)
            self._warn_of_shape(output, made.shape)

    def _warn_of_shape(self, output: ValueInfoProto, made: Shape) -> None:
        """Say if *output* has another shape than the model declares: what reads it may not fit."""
        declared = output.type.tensor_type.shape.dim
        fits = len(declared) == len(made) and all(
            not dim.HasField("dim_value")
            or dim.dim_value < 0
            or least(size) <= dim.dim_value <= most(size)
            for dim, size in zip(declared, made, strict=True)
        )
        if output.type.tensor_type.HasField("shape") and not fits:
            sizes = [d.dim_value if d.HasField("dim_value") else d.dim_param for d in declared]
            _LOG.warning(
                "output %s has shape %s, though the model declares %s",
                output.name, list(made), sizes,
            )  # fmt: skip

    def _add_inputs(self, shapes: Mapping[str, Shape]) -> None:
        for info in network_inputs(self.model):
            shape = shapes[info.name]
            dtype = self._declared(info, "input", shape)
            if dtype is not None:
                kind = TensorType(shape, dtype)
                name = self.builder.add_input(info.name, kind)
                if 0 in shape:  # a value computed from it follows from the shapes
                    name = self._add_empty(name, kind)
                self.values[info.name] = name

    def _add_empty(self, name: str, kind: TensorType) -> str:
        """A constant without elements; adds a row if its other sizes are more than numpy takes."""
        try:
            return self.builder.add_empty(name, kind)
        except ValueError:
            self._blame(name, "input", kind.shape, Unsupported("shape", "its sizes are too large"))
            return name

    def _add_initializers(self, graph: GraphProto) -> None:
        for held in (*graph.initializer, *graph.sparse_initializer):
            tensor = held.values if isinstance(held, SparseTensorProto) else held
            name, code = tensor.name, tensor.data_type
            if name not in self.used:
                continue
            if narrow_type(code):
                self.narrow[name] = array_of(held)
            elif self._dtype(name, "initializer", code, held.dims) is not None:
                self.values[name] = self.builder.add_constant(name, array_of(held))

    def _declared(self, info: ValueInfoProto, what: str, shape: Shape) -> DType | None:
        """The element type that the input or output *info* declares; adds a row if unsupported."""
        if info.type.HasField("tensor_type"):
            return self._dtype(info.name, what, info.type.tensor_type.elem_type, shape)
        self._blame(info.name, what, shape, Unsupported("no tensor", "only tensors are supported"))
        return None

    def _dtype(self, name: str, what: str, code: int, shape: Iterable[int]) -> DType | None:
        """The element type of the tensor *name*; adds a row and returns None if unsupported."""
        try:
            return dtype_of(code)
        except Unsupported as reason:
            self._blame(name, what, shape, reason)
            return None

    def _blame(self, name: str, what: str, shape: Iterable[int], reason: Unsupported) -> None:
        """Add a row for the tensor *name*."""
        shown = str(list(shape))
        self.rows.append(UnsupportedRow(name, what, reason.attribute, shown, reason.advice))

    def _import_all(self, graph: GraphProto) -> None:
        """Translate the nodes that the outputs of *graph* need."""
        nodes, self.used = needed(graph)
        self._add_initializers(graph)
        for node in nodes:
            self._import(node)

    def _branch(self, node: NodeProto, context: NodeContext) -> tuple[str | None, ...]:
        """The values of an ``If``, whose branch is translated in place.

        A condition computed at run time is refused.

        Names defined in the branch are not visible outside it.
        """
        taken = context.constant(0, "condition").item()
        bodies: dict[str, GraphProto] = {a.name: a.g for a in node.attribute}
        body = bodies["then_branch" if taken else "else_branch"]
        outside = self.values, self.narrow, self.used
        values, narrow = ChainMap({}, self.values), ChainMap({}, self.narrow)
        self.values, self.narrow = values, narrow
        self._import_all(body)
        self.values, self.narrow, self.used = outside
        for name, made in zip(node.output, body.output, strict=True):
            if made.name in narrow:
                self.narrow[name] = narrow[made.name]
        return tuple(values.get(made.name) for made in body.output)

    def _import(self, node: NodeProto) -> None:
        """Translate one node; if it is refused, add a row, and stand-ins to check the rest."""
        operands = [name for name in node.input if name]
        supported = has_importer(node)
        missing = (n not in self.values and n not in self.narrow for n in operands)
        if supported and any(missing):
            return  # depends on a node that is in the table already
        context = NodeContext(node, self.opset, self.builder, self.values, self.used, self.known)
        try:
            results = self._translated(node, operands, context, supported)
        except Unsupported as reason:
            found = self._solution(reason)
            if found is not None:
                raise Solved(*found) from None
            self._refuse(node, operands, reason)
            return
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            dims = self._dims(operands)
            if dims and isinstance(error, TypeError):  # what only an int can do was asked of a size
                self._refuse(node, operands, Unsupported("sizes", one_size(dims)))
                return
            demand_consistent(self.model)  # reports operands or attributes that no operator takes
            raise
        self.values.update(
            {
                name: value
                for name, value in zip(node.output, results, strict=False)
                if name and value is not None
            }
        )

    def _solution(self, reason: Unsupported) -> tuple[Dim, Extent] | None:
        """A dimension whose range is assumed, and what it must be instead to avoid *reason*."""
        if isinstance(reason, Unequal):
            return solved(reason.equation, self._free)
        return lengthened(reason.missing, self._free) if isinstance(reason, TooShort) else None

    def _dims(self, operands: Iterable[str]) -> tuple[Dim, ...]:
        """The dimensions that the shapes of *operands* depend on, and the sizes among these."""
        held = [self.values[name] for name in operands if name in self.values]
        shapes = [e for value in held for e in self.builder.types[value].shape]
        sizes = [e for value in held if value in self.known for e in self.known[value].flat]
        return dims_of([*shapes, *(e.above if isinstance(e, Ratio) else e for e in sizes)])

    def _translated(
        self, node: NodeProto, operands: Sequence[str], context: NodeContext, supported: bool
    ) -> tuple[str | None, ...]:
        """The node's values, translated by its importer; constants if all its operands are.

        If no importer can translate a node on constants, onnx's reference implementation evaluates
        it where that is reliable.  A value of a narrow type is stored separately and returned as
        None.
        """
        if operator_of(node) == _IF:
            return self._branch(node, context)
        held = narrow_constant(node)
        if held is not None:
            return (self._constant(node.output[0], held),)
        constant = bool(operands) and node.op_type not in _RANDOM and all(
            name in self.narrow or self.values.get(name) in self.builder.constants
            for name in operands
        )  # fmt: skip
        narrow = [self.narrow[name] for name in operands if name in self.narrow]
        try:
            if not supported:
                raise Unsupported("operator", _UNKNOWN)
            if narrow:
                raise refused(narrow[0])
            made = OPERATORS[operator_of(node)](context)
            results = (made,) if isinstance(made, str) else made
            return self._computed(node, results, context) if constant else results
        except TooLarge:
            raise
        except Unsupported:
            if not constant or (supported and operator_of(node) not in ON_SHAPES):
                raise
        return self._folded(node, operands)

    def _computed(
        self, node: NodeProto, results: tuple[str, ...], context: NodeContext
    ) -> tuple[str | None, ...]:
        """*results*, which depend only on constants, evaluated to constants."""
        operands = [name for name in context.inputs if name in self.builder.types]
        self._require_small(results, operands)
        if all(name in self.builder.constants for name in results):
            return results
        graph = self.builder.finish(Output(name, name) for name in results)
        for made in graph.nodes:
            self._require_small([made.output], made.inputs)
        arrays = constant_values(graph)
        return tuple(
            self._constant(name, array) for name, array in zip(node.output, arrays, strict=False)
        )

    def _require_small(self, values: Iterable[str], operands: Iterable[str]) -> None:
        """Refuse *values* that are too large for constants made from *operands*."""
        types = [self.builder.types[name] for name in operands]
        try:
            for value in values:
                require_small(self.builder.types[value], types)
        except LargeConstant as error:
            raise TooLarge(str(error)) from None

    def _folded(self, node: NodeProto, operands: Sequence[str]) -> tuple[str | None, ...]:
        """The values of a node on constants, computed by onnx's reference implementation."""
        feeds = {
            n: self.narrow[n] if n in self.narrow else self.builder.constants[self.values[n]]
            for n in operands
        }
        results = reference_values(node, feeds, self.model)
        return tuple(
            self._constant(name, array) for name, array in zip(node.output, results, strict=False)
        )

    def _constant(self, name: str, array: Array) -> str | None:
        """Store the value of a node on constants; refuse unsupported element types.

        A value of a narrow type does not become a value of the graph; the result is None.
        """
        if is_narrow(array.dtype):
            self.narrow[name] = array
            return None
        try:
            return self.builder.add_constant(name, array)
        except ValueError:
            what = f"element type {array.dtype.name}"
            raise Unsupported(what, "convert the model to float32") from None

    def _refuse(self, node: NodeProto, operands: Sequence[str], reason: Unsupported) -> None:
        shapes = [
            str(list(self.builder.types[self.values[n]].shape))
            for n in operands
            if n in self.values
        ]
        needs = self._pinnable(reason.inputs) if isinstance(reason, Unknown) else ()
        domain = "" if node.domain in STANDARD else node.domain
        self.rows.append(
            UnsupportedRow(
                node.name or (node.output[0] if node.output else "?"),
                node.op_type,
                reason.attribute,
                ", ".join(shapes),
                f"give its value: {constant_flags(needs)}" if needs else reason.advice,
                needs,
                domain,
                opset_of(self.model, domain),
            )
        )
        self._stand_in(node)

    def _pinnable(self, values: Iterable[str]) -> tuple[str, ...]:
        """The inputs that *values* are, if all of them are such that may determine a shape.

        These are small, and no more than lists: what has several axes is data.
        """
        names = {self.values[info.name]: info.name for info in network_inputs(self.model)
                 if info.name in self.values}  # fmt: skip
        small = all(
            value in names
            and len(self.builder.types[value].shape) <= 1
            and most(self.builder.types[value].size) <= _LARGEST_OPERAND
            for value in values
        )
        return tuple(names[value] for value in values) if small else ()

    def _stand_in(self, node: NodeProto) -> None:
        """Replace the results of *node*, which is refused, by inputs, as far as types are known."""
        types = {n: self.builder.types[self.values[n]] for n in node.input if n in self.values}
        constants = {
            name: self.builder.constants[self.values[name]]
            for name, type_ in types.items()
            if self.values[name] in self.builder.constants and prod(type_.shape) <= _LARGEST_OPERAND
        }
        made = stated_types(self.model) | inferred_types(self.model, node, types, constants)
        for name in node.output:
            if name in made:
                self.values[name] = self.builder.add_input(name, made[name])


def _grouped(rows: Iterable[UnsupportedRow]) -> list[UnsupportedRow]:
    """Rows with the same operator and message become one, of the first node and their number."""
    groups: dict[tuple[str, str, str, str], list[UnsupportedRow]] = {}
    for row in rows:
        groups.setdefault((row.domain, row.op, row.attribute, row.advice), []).append(row)
    return [replace(found[0], count=len(found)) for found in groups.values()]
