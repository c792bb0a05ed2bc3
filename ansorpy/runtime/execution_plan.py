"""A compiled program as a list of calls: the code and the memory of each.

The memory is the caller's inputs and outputs, the context's arena, and the constants: ``POOL``
holds those that calls read at run time, ``RAW`` are those needed only to fill it, and ``SCRATCH``
is memory of one call that fills it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ansorpy.arrays import Array
from ansorpy.codegen.object_code import ObjectCode
from ansorpy.errors import CodegenError, UsageError
from ansorpy.graph.in_place import in_place
from ansorpy.graph.memory import ArenaPlan, Slot
from ansorpy.graph.network import Call, Network, TensorInfo
from ansorpy.ir.alias import Alias
from ansorpy.ir.extents import AnyExtent, dim_extent, dims_of, most, prod_of
from ansorpy.ir.loops import Role
from ansorpy.ir.sizes import Sizes, at, at_most
from ansorpy.ir.symbols import Dim
from ansorpy.measure.build.built import Built, ParamSpec
from ansorpy.runtime.compiled_task import CompiledTask
from ansorpy.runtime.control import Argument, MemoryRegion, PlannedControl, Tells, controls_of
from ansorpy.runtime.footprint import Footprint
from ansorpy.runtime.ports import MAX_RANK, Port, check_array
from ansorpy.runtime.programs import ScheduledProgram
from ansorpy.runtime.sizes import Told, told_by
from ansorpy.target import Target

__all__ = [
    "ExecutionPlan", "PlanStep", "constant_ports", "kernel_ports", "padded", "plan_kernel",
    "plan_network",
]  # fmt: skip

_ALIGNMENT = 64


def padded(size: int) -> int:
    """*size* rounded up to whole cache lines."""
    return -(-size // _ALIGNMENT) * _ALIGNMENT


@dataclass(frozen=True)
class PlanStep:
    """One call of *code*, with arguments in the order of its parameters; *name* is for display.

    The sizes of *dims* follow the arguments.  The call counts those that it *tells*.  ``params``
    describes the parameters; its dimensions are those of the code.  ``shared_bytes`` is the
    workspace that the threads of the call share, by *dims*.
    """

    code: ObjectCode
    args: tuple[Argument, ...]
    name: str = ""
    dims: tuple[Dim, ...] = ()
    tells: tuple[Tells, ...] = ()
    params: tuple[ParamSpec, ...] = ()
    shared_bytes: AnyExtent = 0


@dataclass(frozen=True)
class ExecutionPlan:
    """All inputs for making a library.

    ``direct`` are the constants that are read as they are, with their offsets in ``POOL``;
    ``packs`` fills the rest of the pool once, from these and from ``raw``.  ``programs`` are those
    whose schedules are known.  ``arena_bytes`` is the size of the arena, at the largest sizes if it
    has ``slots``.  ``aliases`` are the outputs in the memory of inputs.  ``counted`` are the
    dimensions whose sizes steps tell, and the largest size of each.  ``controls`` are loops and
    branches over the steps, each before those inside it.
    """

    kind: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    steps: tuple[PlanStep, ...]
    packs: tuple[PlanStep, ...]
    raw: tuple[Array, ...]
    direct: tuple[tuple[int, Array], ...]
    arena_bytes: int
    pool_bytes: int
    target: Target
    threads: int
    median_s: float | None = None
    programs: tuple[ScheduledProgram, ...] = ()
    slots: tuple[Slot, ...] = ()
    aliases: tuple[Alias, ...] = ()
    counted: Sizes = field(default_factory=dict)
    controls: tuple[PlannedControl, ...] = ()

    @cached_property
    def told(self) -> tuple[Told, ...]:
        """Where a call states the size of each dimension.

        Raises:
            UsageError: The inputs do not tell the size of one of them.
        """
        return told_by(self.inputs, self._dims)

    @property
    def _dims(self) -> tuple[Dim, ...]:
        """The dimensions that a run depends on, beyond those of its inputs and capacities."""
        extents = [extent for port in self.outputs for extent in port.shape]
        extents += [slot.size_bytes for slot in self.slots]
        extents += self.offsets
        extents += [dim_extent(dim) for step in self.steps for dim in step.dims]
        known = {*self.capacities, *self.counted}
        return tuple(dim for dim in dims_of(extents) if dim not in known)

    def at_most(self, port: Port) -> Port:
        """*port*, an output, with the largest sizes of what steps count."""
        return replace(port, shape=tuple(at_most(extent, self.counted) for extent in port.shape))

    def is_counted(self, port: Port) -> bool:
        """Whether only steps tell the shape of *port*."""
        return not self.counted.keys().isdisjoint(dims_of(port.shape))

    @cached_property
    def offsets(self) -> tuple[AnyExtent, ...]:
        """The extents that the addresses and the lengths of loops in a run depend on."""
        found = [extent for step in self.steps for arg in step.args for extent in arg.extents]
        found += [extent for control in self.controls for extent in control.extents]
        return tuple(dict.fromkeys(found))

    @cached_property
    def capacities(self) -> Mapping[Dim, tuple[Alias, ...]]:
        """The outputs whose shapes, as a caller gives them, state each capacity."""
        dims = dict.fromkeys(alias.capacity for alias in self.aliases)
        return {
            dim: tuple(alias for alias in self.aliases if alias.capacity == dim)
            for dim in dims
            if dim is not None
        }

    def is_apart(self, alias: Alias) -> bool:
        """Whether rows of the output lie as far apart as the capacity of its memory says."""
        return prod_of(self.outputs[alias.output].shape[: alias.axis]) != 1

    @cached_property
    def workspaces(self) -> tuple[tuple[AnyExtent, int], ...]:
        """The bytes of workspace that calls need: for all threads, and for each; the first by the
        sizes that inputs tell."""
        most_of = {**self.counted, **{dim: dim.high for dim in self.capacities}}
        found = [(at_most(s.shared_bytes, most_of), s.code.thread_bytes) for s in self.steps]
        return tuple(dict.fromkeys(found))

    @property
    def footprint(self) -> Footprint:
        """The memory that a run needs, at the largest sizes of its dimensions."""
        shared = {alias.input for alias in self.aliases}
        own = [port for number, port in enumerate(self.inputs) if number not in shared]
        return Footprint(
            constants=self.pool_bytes,
            arena=self.arena_bytes,
            workspace=max(
                (most(shared) + self.threads * each for shared, each in self.workspaces), default=0
            ),
            ports=sum(most(port.bytes) for port in (*own, *self.outputs)),
        )

    @property
    def objects(self) -> list[ObjectCode]:
        """The distinct object codes of all calls, including those of ``packs``.

        Raises:
            CodegenError: Two different object codes share a symbol.
        """
        found: dict[str, ObjectCode] = {}
        for step in (*self.steps, *self.packs):
            known = found.setdefault(step.code.symbol, step.code)
            if known.digest != step.code.digest:
                raise CodegenError(f"two different programs are both called {known.symbol}")
        return list(found.values())


def plan_network(
    network: Network,
    tasks: Mapping[str, CompiledTask],
    *,
    target: Target,
    threads: int,
    median_s: float | None = None,
) -> ExecutionPlan:
    """Make the plan of *network*; *tasks* has the code of each workload by its key.

    Raises:
        UsageError: The inputs do not tell the size of a dimension.
    """
    network = in_place(network, {key: task.built.overwrites for key, task in tasks.items()})
    maker = _Maker()
    for number, port in enumerate(network.inputs):
        maker.values[port.name] = Argument(MemoryRegion.INPUT, number=number)
    for number, port in enumerate(network.outputs):
        maker.values[port.name] = Argument(MemoryRegion.OUTPUT, number=number)
    maker.values |= _places(network.arena)
    controls, moving = controls_of(network, maker.values)
    maker.values |= moving
    for name, view in network.subviews.items():
        whole = maker.values[view.of]
        maker.values[name] = replace(whole, offset=whole.offset + view.offset_bytes)
    tells: dict[str, list[Tells]] = {}
    for counted in network.counts:
        told = Tells(counted.dim, maker.values[counted.name], counted.depth)
        tells.setdefault(network.root(counted.name), []).append(told)
    for call in network.calls:
        task = tasks[call.key]
        dims = dict(zip(task.dims, call.dag.dims, strict=True))
        maker.add(
            task.built, call.inputs, _named(task, call), call.outputs, call.name,
            tuple(dims.get(dim, dim) for dim in task.sizes),
            [told for name in call.outputs for told in tells.get(network.root(name), ())],
        )  # fmt: skip
        maker.add_program(call.name, task.schedule, call.dag.dims)
    return maker.plan(
        "model", _ports(network.inputs), _ports(network.results), arena=network.arena,
        target=target, threads=threads, median_s=median_s, aliases=network.aliases,
        counted=network.capacities, controls=controls,
    )  # fmt: skip


def _places(arena: ArenaPlan) -> dict[str, Argument]:
    """The place of each value of *arena*."""
    if arena.slots:
        return {name: Argument(MemoryRegion.ARENA, number=at) for name, at in arena.numbers.items()}
    return {name: Argument(MemoryRegion.ARENA, at) for name, at in arena.offsets.items()}


def plan_kernel(
    task: CompiledTask, constants: Mapping[str, Any], *, target: Target, threads: int
) -> ExecutionPlan:
    """Make the plan of one kernel with its *constants* bound.

    Raises:
        UsageError: A constant is missing, unknown, or of another shape or type, or the kernel
            works on parts of larger tensors.
    """
    constants = _checked_constants(task.built, constants)
    apart = [spec.name for spec in task.built.run_params if spec.strides is not None]
    if apart:
        raise UsageError(
            f"{apart[0]} is a part of a larger tensor, which a single kernel does not accept",
            hint="tune the definition without strides",
        )
    maker = _Maker()
    inputs = kernel_ports(task.built, Role.INPUT)
    outputs = kernel_ports(task.built, Role.OUTPUT)
    for region, ports in ((MemoryRegion.INPUT, inputs), (MemoryRegion.OUTPUT, outputs)):
        for number, port in enumerate(ports):
            maker.values[port.name] = Argument(region, number=number)
    names = [port.name for port in inputs], [port.name for port in outputs]
    maker.add(task.built, names[0], constants, names[1], sizes=task.sizes)
    maker.add_program(task.built.run.symbol, task.schedule, task.dims)
    return maker.plan(
        "kernel", inputs, outputs, arena=ArenaPlan({}, 0), target=target, threads=threads,
        median_s=task.median_s,
    )  # fmt: skip


def kernel_ports(built: Built, role: Role) -> tuple[Port, ...]:
    """The inputs or outputs of *built*, in calling order."""
    return _ports([spec for spec in built.run_params if spec.role is role])


def constant_ports(built: Built) -> tuple[Port, ...]:
    """The constants a caller must pass for *built*."""
    made = {spec.name for spec in built.bind_params if spec.role is Role.OUTPUT}
    given = [spec for spec in built.bind_params if spec.role is Role.INPUT]
    given += [
        spec for spec in built.run_params if spec.role is Role.CONSTANT and spec.name not in made
    ]
    return tuple({port.name: port for port in _ports(given)}.values())


def _checked_constants(built: Built, constants: Mapping[str, Any]) -> dict[str, Array]:
    """*constants* as arrays that can be packed; raises :class:`UsageError` for wrong ones."""
    found = {}
    ports = {port.name: port for port in constant_ports(built)}
    expected = ", ".join(ports) or "none; ap.placeholder(..., constant=True) declares one"
    for name, array in constants.items():
        if name not in ports:
            raise UsageError(f"{name!r} is not a constant of this kernel, which takes {expected}")
        found[name] = check_array("constant", ports[name], array)
    missing = [name for name in ports if name not in constants]
    if missing:
        raise UsageError(
            f"the constants {', '.join(missing)} are not bound",
            hint=f"call kernel.bind({', '.join(f'{name}=array' for name in ports)}) first",
        )
    return found


def _named(task: CompiledTask, call: Call) -> dict[str, Array]:
    """The call's constants, under the names that the task's code uses."""
    pairs = zip(task.placeholders, call.dag.args, strict=True)
    return {name: call.constants[op.name] for name, op in pairs if op.name in call.constants}


def _ports(tensors: Sequence[TensorInfo] | Sequence[ParamSpec]) -> tuple[Port, ...]:
    ports = tuple(Port(t.name, tuple(t.shape), t.dtype.numpy) for t in tensors)
    for port in ports:
        if len(port.shape) > MAX_RANK:
            raise UsageError(
                f"{port.name!r} has {len(port.shape)} dimensions; compiled programs take up to "
                f"{MAX_RANK}"
            )
    return ports


@dataclass
class _Space:
    """Layout of the pool; equal arrays share a place."""

    bytes: int = 0
    held: dict[object, int] = field(default_factory=dict)
    arrays: list[tuple[int, Array]] = field(default_factory=list)

    def reserve(self, key: object, size: int) -> int:
        if key not in self.held:
            self.held[key] = self.bytes
            self.bytes += padded(size)
        return self.held[key]

    def place(self, array: Array) -> int:
        known = (id(array), array.shape) in self.held
        offset = self.reserve((id(array), array.shape), array.nbytes)
        if not known:
            self.arrays.append((offset, array))
        return offset


@dataclass
class _Maker:
    """Collects steps and lays out their constants as they are added."""

    values: dict[str, Argument] = field(default_factory=dict)
    steps: list[PlanStep] = field(default_factory=list)
    packs: dict[object, PlanStep] = field(default_factory=dict)
    pool: _Space = field(default_factory=_Space)
    raw: dict[int, Array] = field(default_factory=dict)
    """Arrays by their identity; those in the pool are not needed once more."""
    programs: dict[str, ScheduledProgram] = field(default_factory=dict)
    """Programs by schedule."""

    def add_program(self, name: str, schedule: str, dims: Sequence[Dim]) -> None:
        """Count the call *name* of the program with this *schedule*, if that is known."""
        if schedule:
            known = self.programs.setdefault(schedule, ScheduledProgram(name, schedule))
            self.programs[schedule] = known.called(dims)

    def add(
        self,
        built: Built,
        inputs: Sequence[str],
        constants: Mapping[str, Array],
        outputs: Sequence[str],
        name: str = "",
        sizes: tuple[Dim, ...] = (),
        tells: Sequence[Tells] = (),
    ) -> None:
        """Add one call of *built* on named values; it takes these *sizes* and *tells* others."""
        packed = self._pack(built, constants)
        given, written, args = iter(inputs), iter(outputs), list[Argument]()
        for spec in built.run_params:
            if spec.role is Role.INPUT:
                args.append(self.values[next(given)])
            elif spec.role is Role.OUTPUT:
                args.append(self.values[next(written)])
            elif spec.name in packed:
                args.append(packed[spec.name])
            else:
                args.append(Argument(MemoryRegion.POOL, self.pool.place(constants[spec.name])))
        called = dict(zip(built.dims, map(dim_extent, sizes), strict=True))
        shared = at(built.run.shared_bytes, called)
        params = built.run_params
        self.steps.append(
            PlanStep(built.run, tuple(args), name, sizes, tuple(tells), params, shared)
        )

    def _pack(self, built: Built, constants: Mapping[str, Array]) -> dict[str, Argument]:
        """Add the call of ``bind`` and return the places of its results; empty if there is none.

        Results that ``run`` does not read (intermediates of ``bind``) live in ``SCRATCH``.
        """
        if built.bind is None:
            return {}
        read = {spec.name for spec in built.run_params if spec.role is Role.CONSTANT}
        key = (built.bind.digest, *(id(array) for array in constants.values()))
        found: dict[str, Argument] = {}
        args = []
        scratch = 0
        for spec in built.bind_params:
            if spec.role is not Role.OUTPUT:
                argument = self._given(constants[spec.name])
            elif spec.name in read:
                offset = self.pool.reserve((*key, spec.name), spec.bytes)
                argument = found[spec.name] = Argument(MemoryRegion.POOL, offset)
            else:
                argument = Argument(MemoryRegion.SCRATCH, scratch)
                scratch += padded(spec.bytes)
            args.append(argument)
        self.packs[key] = PlanStep(built.bind, tuple(args), params=built.bind_params)
        return found

    def _given(self, array: Array) -> Argument:
        self.raw.setdefault(id(array), array)
        return Argument(MemoryRegion.RAW, number=list(self.raw).index(id(array)))

    def _sources(self) -> tuple[tuple[PlanStep, ...], tuple[Array, ...]]:
        """The packs, and what they read; that is in the pool where calls read it, too."""
        arrays = list(self.raw.values())
        direct = [self.pool.held.get((id(array), array.shape)) for array in arrays]
        left = [number for number, offset in enumerate(direct) if offset is None]

        def found(argument: Argument) -> Argument:
            if argument.region is not MemoryRegion.RAW:
                return argument
            offset = direct[argument.number]
            if offset is None:
                return Argument(MemoryRegion.RAW, number=left.index(argument.number))
            return Argument(MemoryRegion.POOL, offset)

        packs = [replace(step, args=tuple(map(found, step.args))) for step in self.packs.values()]
        return tuple(packs), tuple(arrays[number] for number in left)

    def plan(
        self,
        kind: str,
        inputs: tuple[Port, ...],
        outputs: tuple[Port, ...],
        *,
        arena: ArenaPlan,
        target: Target,
        threads: int,
        median_s: float | None,
        aliases: tuple[Alias, ...] = (),
        counted: Sizes | None = None,
        controls: tuple[PlannedControl, ...] = (),
    ) -> ExecutionPlan:
        packs, raw = self._sources()
        return ExecutionPlan(
            kind, inputs, outputs, tuple(self.steps), packs, raw, tuple(self.pool.arrays),
            arena.bytes, self.pool.bytes, target, threads, median_s,
            tuple(self.programs.values()), arena.slots, aliases, counted or {}, controls,
        )  # fmt: skip
