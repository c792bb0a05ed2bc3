"""An optimised graph as a network of fused kernel calls over one arena."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ansorpy.graph.aliases import aliases_in, fresh, with_own_parts
from ansorpy.graph.control import Branch, Carried, Control, Loop, Row
from ansorpy.graph.define import GroupDefinition, copy_definition, define
from ansorpy.graph.fusion import Group, fuse
from ansorpy.graph.ir import Graph, NarrowPort, Node, Output
from ansorpy.graph.network import Call, Counted, Network, Subview, TensorInfo
from ansorpy.graph.ops import Conv, ConvTranspose, Op, Pool, Shape, TensorType, Transpose
from ansorpy.graph.order import in_order
from ansorpy.graph.passes.loop_parts import LoopParts
from ansorpy.graph.placement import place_values
from ansorpy.graph.regions import BranchRegion, LoopRegion, Region, Result

__all__ = ["partition"]


def partition(graph: Graph) -> Network:
    """Fuse *graph* into calls and lay out its intermediate values.

    A view (see :mod:`ansorpy.graph.placement`) needs no call: its readers read the same bytes with
    another shape.  An output that no call would compute is copied: a constant, an input, or a value
    that is already another output.  The calls of the bodies of a region stand in its place.
    """
    return _Partition(graph).network()


class _Partition:
    def __init__(self, graph: Graph):
        self.graph = graph = with_own_parts(graph)
        self.placement = place_values(graph)
        self.names: dict[str, str] = {name: name for name in graph.inputs}
        self.returned = graph.returned
        self.results = _result_buffers(graph.inputs, self.returned)
        self.copies = self._name_outputs()
        self.taken = {*self.names.values(), *self.results.values()}
        self.values = {name: self._info(name, name) for name in graph.inputs}
        self.calls: list[Call] = []
        self.subviews: dict[str, Subview] = {}
        self.controls: list[Control] = []
        self.inner_counts: list[Counted] = []
        self.dense: dict[str, str] = {}
        self._add_calls()

    def _add_calls(self) -> None:
        done: set[Region] = set()
        for group in fuse(self.graph, self.placement.views):
            op = group.nodes[0].op
            if not isinstance(op, Result):
                definition = define(self.placement, group)
                self._add(_title(self.graph, group), definition, self._buffer(group.output))
            elif op.region not in done:
                done.add(op.region)
                self._add_region(group.nodes[0], op.region)
        for value, name in self.copies:
            self._add_copy(value, name)

    def network(self) -> Network:
        outputs = tuple(
            _seen(self._info(self.results[o.name], o.value), o.port) for o in self.returned
        )
        counts = self.ordered()
        given = tuple(
            _seen(self.values[name], self.graph.ports.get(name)) for name in self.graph.inputs
        )
        titles = {buffer: name for name, buffer in self.results.items() if name != buffer}
        made = Network(
            given, outputs, self.values, tuple(self.calls), subviews=self.subviews, titles=titles,
            aliases=aliases_in(self.graph), counts=counts, controls=tuple(self.controls),
        )  # fmt: skip
        return made.with_arena()

    def ordered(self) -> tuple[Counted, ...]:
        """Put each call behind those that count its dimensions; return all that are counted."""
        counts = self._counts()
        calls, controls = in_order(self.calls, counts, self.subviews, self.controls)
        self.calls, self.controls = list(calls), list(controls)
        return (*counts, *self.inner_counts)

    def _counts(self) -> tuple[Counted, ...]:
        """The dimensions that calls count, and the values that are their sizes."""
        return tuple(
            Counted(self._buffer(output.value), output.counts.dim, output.counts.capacity)
            for output in self.graph.outputs
            if output.counts is not None
        )

    def _name_outputs(self) -> list[tuple[str, str]]:
        """Let producers write to the caller's buffers; return (value, buffer) pairs to copy.

        Nothing is written to an output without elements.
        """
        copies: list[tuple[str, str]] = []
        for output in self.returned:
            buffer, root = self.results[output.name], self.placement.root(output.value)
            made = root not in self.names and root not in self.graph.constants
            if made and self.placement.is_whole(output.value):
                self.names[root] = buffer
            elif self.graph.types[output.value].size != 0:
                copies.append((output.value, buffer))
        return copies

    def _name(self, root: str) -> str:
        """The name of a value's buffer, distinct from the names of network inputs and outputs."""
        if root not in self.names:
            self.names[root] = self._fresh(root)
        return self.names[root]

    def _buffer(self, value: str) -> str:
        """The name of *value*'s memory, which is its own or part of another value's."""
        place = self.placement.places[value]
        if self.placement.is_whole(value):
            value = place.root
        name = self._name(value)
        if name not in self.values:
            self.values[name] = self._info(name, value)
        if value != place.root and name not in self.subviews:
            root = self._buffer(place.root)
            offset = place.offset * self.graph.types[value].dtype.bytes
            self.subviews[name] = Subview(root, offset)
        return name

    def _info(self, name: str, value: str) -> TensorInfo:
        kind = self.graph.types[value]
        return TensorInfo(name, kind.shape, kind.dtype)

    def _add(self, title: str, definition: GroupDefinition, output: str) -> None:
        inputs = tuple(map(self._buffer, definition.inputs))
        self.calls.append(Call(title, definition.dag, inputs, definition.constants, (output,)))

    def _add_copy(self, value: str, name: str) -> None:
        self.values[name] = self._info(name, value)
        self._add(f"copy_{name}", copy_definition(self.placement, value), name)

    def _add_region(self, node: Node, region: Region) -> None:
        """Add the calls of the bodies of *region*, of which *node* is a result."""
        operands = list(map(self._operand, node.inputs))
        made = {n.op.index: n.output for n in self.graph.nodes
                if isinstance(n.op, Result) and n.op.region is region}  # fmt: skip
        results = [
            self._buffer(made[number]) if number in made else self._new(f"{node.output}.more", kind)
            for number, kind in enumerate(region.types())
        ]
        if isinstance(region, LoopRegion):
            self._add_loop(node.output, region, operands, results)
        else:
            assert isinstance(region, BranchRegion)
            self._add_branches(node.output, region, operands, results)

    def _add_loop(
        self, title: str, region: LoopRegion, operands: Sequence[str], results: Sequence[str]
    ) -> None:
        parts = LoopParts.of(region, operands)
        inside, outside = parts.inside, parts.outside
        conditions = list(outside.first)
        limit = conditions.pop(0) if region.has_limit else None
        begins = conditions.pop(0) if region.has_start else None
        body = _Partition(region.body)
        name = self._names(f"{title}/")
        counter, *current = map(name, (*inside.first, *inside.carried))
        rows = [name(value) for value in inside.read]
        made = [name(body.results[o.name]) for o in body.returned]
        goes_on = made.pop(0) if region.has_condition else None
        carried = tuple(
            Carried(before, now, next_, result, self._new(f"{title}.spare", kind))
            for before, now, next_, result, kind in zip(
                outside.carried, current, made, results, region.types(), strict=False
            )
        )
        read = zip(rows, outside.read, region.read, strict=True)
        count = region.carried
        written = zip(made[count:], results[count:], region.written, strict=False)
        start, at = len(self.calls), len(self.controls)
        captured = dict(zip(inside.others, outside.others, strict=True))
        self._include(body, partial(_named, captured, name))
        loop = Loop(
            start, len(self.calls), region.trips, limit, begins, goes_on, counter, carried,
            (*(Row(*row, False) for row in read), *(Row(*row, True) for row in written)),
            results[-1] if region.counts else None, region.is_bounded,
        )  # fmt: skip
        self.controls.insert(at, loop)

    def _add_branches(
        self, title: str, region: BranchRegion, operands: Sequence[str], results: Sequence[str]
    ) -> None:
        start, at = len(self.calls), len(self.controls)
        ends = []
        for graph, reads in ((region.then, region.then_reads), (region.other, region.other_reads)):
            body, name = _Partition(graph), self._names(f"{title}/")
            outside = dict(zip(graph.inputs, (operands[number] for number in reads), strict=True))
            outside |= {
                body.results[o.name]: result
                for o, result in zip(body.returned, results, strict=True)
            }
            self._include(body, partial(_named, outside, name))
            ends.append(len(self.calls))
        self.controls.insert(at, Branch(start, ends[1], ends[0], operands[0]))

    def _include(self, body: _Partition, name: Callable[[str], str]) -> None:
        """Add the calls of *body*, whose values have the names that *name* gives here."""
        by, counts = len(self.calls), body.ordered()
        made = {body.results[o.name]: body._info(o.name, o.value) for o in body.returned}
        for value, info in (made | body.values).items():
            self.values.setdefault(name(value), replace(info, name=name(value)))
        for value, view in body.subviews.items():
            found = Subview(name(view.of), view.offset_bytes)
            if found.of in self.subviews:
                whole = self.subviews[found.of]
                found = Subview(whole.of, whole.offset_bytes + found.offset_bytes)
            self.subviews[name(value)] = found
        self.calls += [
            replace(c, inputs=tuple(map(name, c.inputs)), outputs=tuple(map(name, c.outputs)))
            for c in body.calls
        ]
        self.controls += [control.moved(name, by) for control in body.controls]
        self.inner_counts += [replace(c, name=name(c.name), depth=c.depth + 1) for c in counts]

    def _operand(self, value: str) -> str:
        """The name of memory that holds *value* densely: of a copy if its own does not."""
        if value not in self.graph.constants and self.placement.is_dense(value):
            return self._buffer(value)
        if value not in self.dense:
            self.dense[value] = self._fresh(f"{value}.copy")
            self._add_copy(value, self.dense[value])
        return self.dense[value]

    def _names(self, before: str) -> Callable[[str], str]:
        """A function that gives each value of a body a name of its own, which begins so."""
        known: dict[str, str] = {}

        def name(value: str) -> str:
            if value not in known:
                known[value] = self._fresh(f"{before}{value}")
            return known[value]

        return name

    def _new(self, name: str, kind: TensorType) -> str:
        """The name of a further value."""
        name = self._fresh(name)
        self.values[name] = TensorInfo(name, kind.shape, kind.dtype)
        return name

    def _fresh(self, name: str) -> str:
        name = fresh(name, self.taken)
        self.taken.add(name)
        return name


def _named(outside: Mapping[str, str], name: Callable[[str], str], value: str) -> str:
    """The name that *outside* has for *value*, or else its own, by *name*."""
    return outside[value] if value in outside else name(value)


def _seen(info: TensorInfo, port: NarrowPort | None) -> TensorInfo:
    """*info* of an input or output as callers see it."""
    return info if port is None else TensorInfo(info.name, port.shape, port.kind)


def _result_buffers(inputs: Sequence[str], outputs: Sequence[Output]) -> dict[str, str]:
    """The buffer of each output, which has the output's name unless an input has that name."""
    buffers = {output.name: output.name for output in outputs}
    taken = {*inputs, *buffers}
    for name in filter(buffers.__contains__, inputs):
        buffers[name] = fresh(name, taken)
        taken.add(buffers[name])
    return buffers


_MOST_NAMED = 24
"""Maximum number of operators in a title; only unrolled recurrences have more."""


def _title(graph: Graph, group: Group) -> str:
    """``conv3x3s2_add_relu_112x112x64``: operators, then the stored shape without a batch of 1.

    A convolution or pooling that reads or writes another layout says so behind its operators:
    ``conv3x3s2_relu_from_nchw``.  For a long group, it names the first operators and counts the
    others.
    """
    parts: list[str] = []
    layouts: list[str] = []
    slides = [isinstance(node.op, Conv | ConvTranspose | Pool) for node in group.nodes]
    for number, node in enumerate(group.nodes):
        layout = _layout(node.op, before=any(slides[number:]), after=any(slides[:number]))
        if layout:
            layouts.append(layout)
            continue
        label = node.op.label
        if isinstance(node.op, Conv | ConvTranspose):
            label += _window(graph.types[node.inputs[1]].shape[: len(node.op.strides)], node.op)
            label = f"group{label}" if node.op.groups > 1 else label
        elif isinstance(node.op, Pool):
            label += _window(node.op.kernel, node.op)
        parts.append(label)
    if len(parts) > _MOST_NAMED:
        parts[_MOST_NAMED - 1 :] = [f"{len(parts) - _MOST_NAMED + 1}more"]
    shape = graph.types[group.output].shape
    said = shape[1:] if shape[:1] == (1,) and len(shape) > 1 else shape
    return "_".join([*parts, *layouts, "x".join(map(str, said))])


_CHANNELS_FIRST = {3: "ncw", 4: "nchw", 5: "ncdhw"}
"""Layouts of images and sequences, by rank."""


def _layout(op: Op, *, before: bool, after: bool) -> str:
    """The change of layout that *op* is, *before* or *after* an operator with windows.

    This is ``from_nchw`` or ``to_nchw``; empty if it is none.
    """
    if not isinstance(op, Transpose) or len(op.perm) not in _CHANNELS_FIRST:
        return ""
    first, rank = _CHANNELS_FIRST[len(op.perm)], len(op.perm)
    if before and op.perm == (0, *range(2, rank), 1):
        return f"from_{first}"
    return f"to_{first}" if after and op.perm == (0, rank - 1, *range(1, rank - 1)) else ""


def _window(kernel: Shape, op: Conv | ConvTranspose | Pool) -> str:
    stride = "x".join(map(str, sorted(set(op.strides))))
    return "x".join(map(str, kernel)) + ("" if stride == "1" else f"s{stride}")
