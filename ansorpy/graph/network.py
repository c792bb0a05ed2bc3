"""Networks: sequences of kernel calls over named buffers, which are tuned, compiled and run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile

from ansorpy.graph.control import Control, Loop, runs_of
from ansorpy.graph.ir import Array
from ansorpy.graph.memory import ArenaPlan, Lifetime, plan_arena
from ansorpy.graph.ops import Shape
from ansorpy.ir.alias import Alias
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.extents import AnyExtent, most, prod_of
from ansorpy.ir.narrow import ElementType, Narrow
from ansorpy.ir.sizes import Sizes, at_most
from ansorpy.ir.strides import padded
from ansorpy.ir.symbols import Dim
from ansorpy.ir.text.serialize import structural_hash

__all__ = ["Call", "Counted", "Network", "Subview", "TensorInfo", "Workload"]


@dataclass(frozen=True)
class TensorInfo:
    """Name, shape and element type of a dense row-major buffer."""

    name: str
    shape: Shape
    dtype: ElementType

    @cached_property
    def bytes(self) -> AnyExtent:
        size = prod_of(self.shape)
        kind = self.dtype
        return kind.bytes_of(size) if isinstance(kind, Narrow) else size * kind.bytes


@dataclass(frozen=True)
class Subview:
    """The place of a value without memory of its own: *offset_bytes* into the value *of*."""

    of: str
    offset_bytes: AnyExtent


@dataclass(frozen=True)
class Counted:
    """A dimension whose size a run counts: the value *name* is the size, at most *capacity*.

    With a *depth*, each iteration of so many loops, one in the other, counts it for itself.
    """

    name: str
    dim: Dim
    capacity: AnyExtent
    depth: int = 0


@dataclass(frozen=True)
class Call:
    """One kernel call.

    ``dag.args`` are the values ``inputs`` (a value may appear twice) and then ``constants``;
    ``dag.outputs`` go to ``outputs``.  A placeholder may have another shape of the same size than
    its value, as only the address is passed.  ``dag.strides`` has the strides of values that are
    not dense.
    """

    name: str
    dag: ComputeDAG
    inputs: tuple[str, ...]
    constants: Mapping[str, Array]
    outputs: tuple[str, ...]

    @cached_property
    def key(self) -> str:
        """Structural hash of the definition."""
        return structural_hash(self.dag)

    @cached_property
    def pack(self) -> frozenset[int]:
        """Identity of its constants; equal for calls with the same arrays."""
        return frozenset(map(id, self.constants.values()))


@dataclass(frozen=True)
class Workload:
    """A definition shared by ``weight`` calls of a network, with ``packs`` sets of constants.

    A call in a loop counts as often as the loop is expected to repeat it.
    ``touched_bytes`` counts the bytes that the network reads and writes from one call to the next
    call with the same constants, which may be in its next run, at the largest sizes.
    """

    key: str
    name: str
    dag: ComputeDAG
    weight: int
    packs: int
    touched_bytes: int


@dataclass(frozen=True)
class Network:
    """Calls in execution order over named values.

    A value is a network input (read only), a network output (the caller's buffer), a value in the
    arena, or one of the ``subviews`` of such a value; ``values`` has them all, in their stored
    shapes.  ``titles`` has the caller's names of outputs whose values have other names because
    inputs have the same names.  ``aliases`` are the outputs in the memory of inputs, which are
    subviews of them.  ``counts`` are the dimensions that the calls count; what depends on one is
    called after the call that computes its size.  ``controls`` are loops and branches over calls,
    each before those inside it; values whose places move from iteration to iteration are not in the
    arena.
    """

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    values: Mapping[str, TensorInfo]
    calls: tuple[Call, ...]
    arena: ArenaPlan = field(default_factory=lambda: ArenaPlan({}, 0))
    subviews: Mapping[str, Subview] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    aliases: tuple[Alias, ...] = ()
    counts: tuple[Counted, ...] = ()
    controls: tuple[Control, ...] = ()

    @property
    def results(self) -> tuple[TensorInfo, ...]:
        """The outputs under the names that callers use."""
        return tuple(replace(t, name=self.titles.get(t.name, t.name)) for t in self.outputs)

    def workloads(self) -> list[Workload]:
        """The distinct definitions, in order of first use."""
        return list(self._workloads)

    @cached_property
    def _workloads(self) -> list[Workload]:
        places: dict[str, list[int]] = {}
        for place, call in enumerate(self.calls):
            places.setdefault(call.key, []).append(place)
        found = []
        for key, same in places.items():
            first = self.calls[same[0]]
            packs = {self.calls[place].pack for place in same}
            touched = self._touched_bytes(same[0])
            weight = sum(runs_of(place, self.controls) for place in same)
            found.append(Workload(key, first.name, first.dag, weight, len(packs), touched))
        return found

    def _touched_bytes(self, place: int) -> int:
        """Bytes that calls access from number *place* to the next call with its constants."""
        own = self.calls[place].pack
        after = (*self.calls[place + 1 :], *self.calls[:place])
        different = takewhile(lambda call: not own or call.pack != own, after)
        between = (self.calls[place], *different)
        constants = {id(a): a.nbytes for call in between for a in call.constants.values()}
        touched = {name for call in between for name in (*call.inputs, *call.outputs)}
        roots = {self.root(name) for name in touched}
        ends = {t.name: t.bytes for t in (*self.inputs, *self.outputs)}
        inside = sum(padded(most(self.values[name].bytes)) for name in roots - ends.keys())
        outside = sum(most(ends[name]) for name in roots & ends.keys())
        return sum(constants.values()) + min(inside, most(self.arena.bytes)) + outside

    def root(self, name: str) -> str:
        """The value of whose memory the value *name* is a part; itself if it has its own."""
        return self.subviews[name].of if name in self.subviews else name

    @property
    def capacities(self) -> Sizes:
        """The largest size of each dimension that the calls count."""
        found: dict[Dim, AnyExtent] = {}
        for counted in sorted(self.counts, key=lambda counted: counted.depth):
            found[counted.dim] = at_most(counted.capacity, found)
        return found

    def with_arena(self) -> Network:
        """The same network with an arena for its values."""
        return replace(self, arena=plan_arena(self.lifetimes()))

    def lifetimes(self) -> dict[str, Lifetime]:
        """The lifetime of each value in the arena; if it has parts, from the first one on.

        A value that a loop reads or writes, and that lives longer than one of its iterations, lives
        from the loop's first call to the call behind it.  Values whose sizes are counted get the
        room of the largest size.
        """
        used = _uses(self)
        spans = {name: (min(places), max(places)) for name, places in used.items()}
        for loop in self.controls:
            if isinstance(loop, Loop):
                held = set(map(self.root, (*loop.reads, *loop.writes)))
                for name, places in used.items():
                    inside = [loop.start <= place < loop.stop for place in places]
                    if any(inside) and (name in held or not all(inside)):
                        first, last = spans[name]
                        spans[name] = min(first, loop.start), max(last, loop.stop)
        hidden = {info.name for info in (*self.inputs, *self.outputs)}
        hidden.update(name for control in self.controls for name in control.moving)
        return {
            name: Lifetime(first, last, at_most(self.values[name].bytes, self.capacities))
            for name, (first, last) in spans.items()
            if name not in hidden
        }


def _uses(network: Network) -> dict[str, list[int]]:
    """The numbers of the calls that use each value; what a loop or branch uses, its first does."""
    used: dict[str, list[int]] = {}
    inner: dict[int, list[str]] = {}
    for control in network.controls:
        inner.setdefault(control.start, []).extend((*control.reads, *control.writes))
    for place, call in enumerate(network.calls):
        for name in (*call.outputs, *inner.get(place, ()), *call.inputs):
            used.setdefault(network.root(name), []).append(place)
    return used
