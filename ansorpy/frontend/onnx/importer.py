"""Import of ONNX models as network graphs with typed shapes and folded constants."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Hashable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from math import prod

from onnx import GraphProto, ModelProto, NodeProto, SparseTensorProto, ValueInfoProto

from ansorpy.errors import UnsupportedRow
from ansorpy.frontend.onnx.bounded import GivenBounds
from ansorpy.frontend.onnx.context import NodeContext, Translate, element_type_of
from ansorpy.frontend.onnx.control.scopes import Blamed, Inner
from ansorpy.frontend.onnx.control.sequences import identity
from ansorpy.frontend.onnx.control.values import Maybe, Value, leaves
from ansorpy.frontend.onnx.elements import Elements
from ansorpy.frontend.onnx.equations import lengthened, solved
from ansorpy.frontend.onnx.nodes import STANDARD, needed, signature
from ansorpy.frontend.onnx.quantized.narrow import (
    CARRIES,
    READS,
    SMALL,
    add_constant,
    add_input,
    constant_array,
    kinds_of,
    narrow_array,
    output_of,
    refused,
)
from ansorpy.frontend.onnx.ratio import Ratio
from ansorpy.frontend.onnx.reader import array_of, demand_computed, demand_consistent, opset_of
from ansorpy.frontend.onnx.reference import evaluated
from ansorpy.frontend.onnx.refusal import LARGEST_OPERAND, advice_of, failed, pinnable, unsupported
from ansorpy.frontend.onnx.registry import (
    CONTROL,
    ON_SHAPES,
    has_importer,
    importer_of,
    operator_of,
    unknown_advice,
)
from ansorpy.frontend.onnx.result_types import inferred_types, stated_types, warn_of_shape
from ansorpy.frontend.onnx.sequence_inputs import tensor_names
from ansorpy.frontend.onnx.shapes import InputShapes, network_inputs
from ansorpy.frontend.onnx.unsupported import TooLarge, TooShort, Unequal, Unknown, Unsupported
from ansorpy.graph.constants import constant_values
from ansorpy.graph.ir import Array, Graph, GraphBuilder, LargeConstant, Output, require_small
from ansorpy.graph.ops import Shape, TensorType
from ansorpy.ir.extents import Extent, dim_extent, dims_of, most
from ansorpy.ir.narrow import ElementType, Narrow
from ansorpy.ir.symbols import Dim
from ansorpy.size_bounds import Bound

__all__ = ["Importer", "Solved"]

_RANDOM = frozenset({
    "Bernoulli", "Dropout", "Multinomial", "RandomNormalLike", "RandomUniformLike",
})  # fmt: skip


class Solved(Exception):
    """An operator needs a dimension to be an extent of others."""

    def __init__(self, dim: Dim, extent: Extent):
        super().__init__(dim, extent)
        self.dim, self.extent = dim, extent


class Importer:
    """The state of one import: values so far, and table rows for unsupported nodes and tensors."""

    def __init__(self, model: ModelProto, inputs: InputShapes, bounds: Mapping[str, Bound]):
        self.model = model
        self.opset = opset_of(model)
        self.builder = GraphBuilder()
        self.values: MutableMapping[str, str] = {}
        self.lists: MutableMapping[str, Value] = {}
        self.known: dict[str, Elements] = {}
        self.rows: list[UnsupportedRow] = []
        self.used: frozenset[str] = frozenset()
        self._stated = stated_types(model)
        self._free = inputs.free
        self._shapes = inputs.shapes
        self._bounds = GivenBounds(bounds, model.graph)
        self._network = self.builder
        self._counting: dict[Hashable, Sequence[Value | None]] = {}
        self._add_inputs(inputs.shapes)

    def run(self) -> Graph:
        """The graph of the network.

        Raises:
            Solved: Some operator can only be translated if a dimension is another extent.
            UnsupportedModel: Nodes, inputs or outputs are refused; its table lists all of them.
            UsageError: A bound has no effect, or operators do not take inputs of these shapes.
            ForeignFile: The model is not valid.
        """
        self._import_all(self.model.graph)
        for output in self.model.graph.output:
            self._refuse_output(output)
        if self.rows:
            raise unsupported(self.rows)
        outputs = [o.name for o in self.model.graph.output]
        self._bounds.demand_used()
        demand_computed(outputs, {*self.values, *self.lists})
        return self.builder.finish(made for name in outputs for made in self._outputs(name))

    def _outputs(self, name: str) -> list[Output]:
        """The outputs that the output *name* of the model becomes: one for each of its tensors."""
        value = self.value(name)
        if isinstance(value, Maybe) and isinstance(value.value, str):
            value = value.value
        made = leaves(value)
        names = [name] if isinstance(value, str) else tensor_names(name, len(made))
        return [output_of(self.builder, *pair) for pair in zip(names, made, strict=True)]

    def _type(self, value: str) -> ElementType:
        """The element type of a graph value, as the model sees it."""
        return self.builder.narrow.get(value, self.builder.types[value].dtype)

    def _refuse_output(self, output: ValueInfoProto) -> None:
        """Add a row for *output* if it does not have the declared type."""
        if output.name in self.values:
            made = self.builder.types[self.values[output.name]]
            given = self._type(self.values[output.name])
            declared = self._declared(output, "output", made.shape)
            if declared is not None and declared is not given:
                advice = f"the nodes give {given.value}"
                reason = Unsupported(f"element type {declared.value}", advice)
                self._blame(output.name, "output", made.shape, reason)
            warn_of_shape(output, made.shape)

    def _add_inputs(self, shapes: Mapping[str, Shape]) -> None:
        for info in network_inputs(self.model):
            shape = shapes[info.name]
            dtype = self._declared(info, "input", shape)
            if isinstance(dtype, Narrow):
                self.values[info.name] = add_input(self.builder, info.name, dtype, shape)
            elif dtype is not None:
                kind = TensorType(shape, dtype)
                name = self.builder.add_input(info.name, kind)
                if 0 in shape:  # a value computed from it follows from the shapes
                    name = self._add_empty(name, kind)
                self._bind(info.name, name)

    def _add_empty(self, name: str, kind: TensorType) -> str:
        """A constant without elements; adds a row if its other sizes are more than numpy takes."""
        try:
            return self.builder.add_empty(name, kind)
        except ValueError:
            self._blame(name, "input", kind.shape, Unsupported("shape", "its sizes are too large"))
            return name

    def _add_initializers(self, graph: GraphProto) -> None:
        is_body = isinstance(self.values, ChainMap)  # which may be translated once more
        add = self.builder.share_constant if is_body else self.builder.add_constant
        for held in (*graph.initializer, *graph.sparse_initializer):
            tensor = held.values if isinstance(held, SparseTensorProto) else held
            name, code = tensor.name, tensor.data_type
            if name not in self.used:
                continue
            dtype = self._dtype(name, "initializer", code, held.dims)
            if isinstance(dtype, Narrow):
                self.values[name] = add_constant(self.builder, name, array_of(held))
            elif dtype is not None:
                self.values[name] = add(name, array_of(held))

    def _declared(self, info: ValueInfoProto, what: str, shape: Shape) -> ElementType | None:
        """The element type that the input or output *info* declares; adds a row if unsupported."""
        if info.type.HasField("tensor_type"):
            return self._dtype(info.name, what, info.type.tensor_type.elem_type, shape)
        reason = Unsupported("no tensor", "give the shapes of its tensors, in Python: shapes=")
        self._blame(info.name, what, shape, reason)
        return None

    def _dtype(self, name: str, what: str, code: int, shape: Iterable[int]) -> ElementType | None:
        """The element type of the tensor *name*; adds a row and returns None if unsupported."""
        try:
            return element_type_of(code)
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

    def inlined(self, body: GraphProto, given: Mapping[str, Value]) -> list[Value]:
        """The values of *body*, translated in place; names defined in it are not visible outside.

        Raises:
            Blamed: Nodes of it are refused.
        """
        outside = self.values, self.lists, self.used
        self.values, self.lists = ChainMap({}, self.values), ChainMap({}, self.lists)
        try:
            for name, value in given.items():
                self._bind(name, value)
            self._import_all(body)
            names = [output.name for output in body.output]
            if any(name not in self.values and name not in self.lists for name in names):
                if not self.rows:
                    demand_computed(names, {*self.values, *self.lists})
                raise Blamed
            return list(map(self.value, names))
        finally:
            self.values, self.lists, self.used = outside

    @contextmanager
    def inside(self) -> Iterator[Inner]:
        """While this lasts, what is translated becomes part of the graph of a body."""
        inner = Inner(self.builder, self.values, self.lists, self.known)
        outside = self.builder, self.values, self.lists, self.known
        self.builder, self.values, self.lists = inner.builder, inner.values, inner.lists
        self.known = inner.known
        try:
            yield inner
        finally:
            self.builder, self.values, self.lists, self.known = outside

    @contextmanager
    def both(self) -> Iterator[None]:
        """While this lasts, no size that nobody stated is chosen so that a node becomes possible:
        it is in one of two branches, of which a run may take the other."""
        free, self._free = self._free, []
        try:
            yield
        finally:
            self._free = free

    def value(self, name: str) -> Value:
        """What *name* stands for."""
        return self.lists[name] if name in self.lists else self.values[name]

    def _bind(self, name: str, value: Value) -> None:
        """Let *name* stand for *value*."""
        if isinstance(value, str):
            self.values[name] = value
            self._bounds.apply(self.builder, self.known, name, value)
        else:
            self.lists[name] = value

    def _import(self, node: NodeProto) -> None:
        """Translate one node; if it is refused, add a row, and stand-ins to check the rest."""
        operands = [name for name in node.input if name]
        missing = (n not in self.values and n not in self.lists for n in operands)
        if has_importer(node) and any(missing):
            return  # depends on a node that is in the table already
        context = NodeContext(
            node, self.opset, self.builder, self.values, self.used, self.known, self._stated,
            bounds=self._bounds if self.builder is self._network else None,
        )  # fmt: skip
        try:
            results = self._once(context)
        except Blamed:
            self._stand_in(node)
            return
        except Unsupported as reason:
            found = self._solution(reason)
            if found is not None:
                raise Solved(*found) from None
            self._refuse(node, reason)
            return
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            dims = self._dims(operands)
            if dims and isinstance(error, TypeError):  # what only an int can do was asked of a size
                self._refuse(node, context.undecided("sizes", map(dim_extent, dims)))
                return
            demand_consistent(self.model, self._shapes)  # reports what no operator takes
            raise failed(node, error) from error
        made = [*results, *[None] * len(node.output)]  # it may have left some out
        for number, (name, value) in enumerate(zip(node.output, made, strict=False)):
            if name and value is not None:
                self._bind(name, value)
            if name in self.used and not value:
                self._refuse(node, Unsupported(f"output {number}", "ansorpy does not compute it"))

    def _once(self, context: NodeContext) -> Sequence[Value | None]:
        """The node's values; those of an equal node if a run counts them: counts are then equal."""
        node = context.node
        if operator_of(node) in CONTROL:  # it may read more than its operands
            return CONTROL[operator_of(node)](self, context)
        values = [self.values.get(name, "") for name in node.input]
        used = tuple(name in self.used for name in node.output)
        same = (signature(node, values), used, self.builder)
        if same not in self._counting:
            before = len(self.builder.counts)
            results = self._translated(context)
            if len(self.builder.counts) == before:
                return results
            self._counting[same] = results
        return self._counting[same]

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

    def _translated(self, context: NodeContext) -> Sequence[Value | None]:
        """The node's values, translated by its importer; constants if all its operands are.

        If no importer can translate a node on constants, onnx's reference implementation evaluates
        it where that is reliable.
        """
        node, operator = context.node, operator_of(context.node)
        operands = [name for name in node.input if name]
        if any(name in self.lists for name in operands):
            if node.op_type == "Identity":
                return identity(self, context)
            raise Unsupported("a sequence or optional", "only its own operators take it")
        held = narrow_array(node)
        if held is not None:
            return (self._constant(node.output[0], held),)
        constant = bool(operands) and node.op_type not in _RANDOM and all(
            self.values.get(name) in self.builder.constants for name in operands
        )  # fmt: skip
        importer = importer_of(operator)
        try:
            if importer is None:
                raise Unsupported("operator", unknown_advice(node.domain))
            return self._from_importer(importer, context, constant)
        except TooLarge:
            raise
        except Unsupported:
            if not constant or (importer is not None and operator not in ON_SHAPES):
                raise
        return self._folded(context)

    def _from_importer(
        self, importer: Translate, context: NodeContext, constant: bool
    ) -> Sequence[str | None]:
        """What the operator's importer makes, evaluated if it is *constant*, of the narrow types
        of its operands if it carries these."""
        operator = operator_of(context.node)
        narrow = kinds_of(self.builder, context.inputs)
        kind = next(iter(narrow.values()), None)
        if kind is not None and operator not in CARRIES | READS:
            raise refused(kind)
        made = importer(context)
        results = (made,) if isinstance(made, str) else made
        if kind is not None and operator in CARRIES:
            self.builder.narrow.update(dict.fromkeys(results, kind))
        keeps = any(most(self.builder.types[value].size) > SMALL for value in narrow)
        return self._computed(context, results) if constant and not keeps else results

    def _computed(self, context: NodeContext, results: tuple[str, ...]) -> tuple[str | None, ...]:
        """*results*, which depend only on constants, evaluated to constants."""
        self._require_small(results, context.inputs)
        if all(name in self.builder.constants for name in results):
            return results
        graph = self.builder.part(results)
        if any(step.op.dims for step in graph.nodes):
            return results  # what has no elements may have open sizes
        for step in graph.nodes:
            self._require_small([step.output], step.inputs)
        made = []
        arrays = constant_values(graph)
        for name, value, array in zip(context.node.output, results, arrays, strict=False):
            made.append(self.builder.add_constant(name, array))
            if value in self.builder.narrow:
                self.builder.narrow[made[-1]] = self.builder.narrow[value]
        return tuple(made)

    def _require_small(self, values: Iterable[str], operands: Iterable[str]) -> None:
        """Refuse *values* that are too large for constants made from *operands*."""
        types = [self.builder.types[name] for name in operands]
        try:
            for value in values:
                require_small(self.builder.types[value], types)
        except LargeConstant as error:
            raise TooLarge(str(error)) from None

    def _folded(self, context: NodeContext) -> tuple[str | None, ...]:
        """The values of a node on constants, computed by onnx's reference implementation."""
        node, names = context.node, [name for name in context.node.input if name]
        if dims := self._dims(names):  # the extents of arrays are numbers
            raise context.undecided("operands without elements", map(dim_extent, dims))
        feeds = {name: constant_array(self.builder, self.values[name]) for name in names}
        results = evaluated(node, feeds, self.model)
        return tuple(
            self._constant(name, array) for name, array in zip(node.output, results, strict=False)
        )

    def _constant(self, name: str, array: Array) -> str:
        """Store the value of a node on constants; refuse unsupported element types."""
        if array.dtype.name in {kind.value for kind in Narrow}:
            return add_constant(self.builder, name, array)
        try:
            return self.builder.add_constant(name, array)
        except ValueError:
            what = f"element type {array.dtype.name}"
            raise Unsupported(what, "convert the model to float32") from None

    def _refuse(self, node: NodeProto, reason: Unsupported) -> None:
        """Add a row for *node*, and stand-ins for its results."""
        held = [self.values[name] for name in node.input if name in self.values]
        shapes = [str(list(self.builder.types[value].shape)) for value in held]
        given = [i.name for i in network_inputs(self.model) if i.name in self.values]
        names = {self.values[name]: name for name in given}
        blamed = reason.inputs if isinstance(reason, Unknown) else ()
        is_outside = self.builder is self._network
        bound = reason.bound if isinstance(reason, Unknown) and is_outside else ""
        needs = pinnable(blamed, names, self.builder.types)
        domain = "" if node.domain in STANDARD else node.domain
        self.rows.append(
            UnsupportedRow(
                node.name or (node.output[0] if node.output else "?"),
                node.op_type,
                reason.attribute,
                ", ".join(shapes),
                advice_of(reason, needs, bound),
                needs,
                domain,
                opset_of(self.model, domain),
                bound=bound,
            )
        )
        self._stand_in(node)

    def _stand_in(self, node: NodeProto) -> None:
        """Replace the results of *node*, which is refused, by inputs, as far as types are known."""
        types = {n: self.builder.types[self.values[n]] for n in node.input if n in self.values}
        constants = {
            name: self.builder.constants[self.values[name]]
            for name, type_ in types.items()
            if self.values[name] in self.builder.constants and prod(type_.shape) <= LARGEST_OPERAND
        }
        made = self._stated | inferred_types(self.model, node, types, constants)
        for name in node.output:
            if name in made:
                self.values[name] = self.builder.add_input(self.builder.fresh(name), made[name])
