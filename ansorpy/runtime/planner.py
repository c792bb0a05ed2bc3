"""Make the execution plan of a network, or of one kernel, from compiled code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ansorpy.arrays import Array
from ansorpy.errors import UsageError
from ansorpy.graph.in_place import in_place
from ansorpy.graph.memory import ArenaPlan
from ansorpy.graph.network import Call, Network, TensorInfo
from ansorpy.ir.alias import Alias
from ansorpy.ir.extents import dim_extent
from ansorpy.ir.loops import Role
from ansorpy.ir.sizes import Sizes, at
from ansorpy.ir.strides import padded
from ansorpy.ir.symbols import Dim
from ansorpy.measure.build.built import Built, ParamSpec
from ansorpy.runtime.compiled_task import CompiledTask
from ansorpy.runtime.control import Argument, MemoryRegion, PlannedControl, Tells, controls_of
from ansorpy.runtime.execution_plan import ExecutionPlan, PlanStep, ScheduledProgram
from ansorpy.runtime.ports import MAX_RANK, Port, check_array
from ansorpy.size_bounds import Bound
from ansorpy.target import Target

__all__ = ["constant_ports", "kernel_ports", "plan_kernel", "plan_network"]


def plan_network(
    network: Network,
    tasks: Mapping[str, CompiledTask],
    *,
    target: Target,
    threads: int,
    median_s: float | None = None,
    bounds: Mapping[str, Bound] | None = None,
) -> ExecutionPlan:
    """Make the plan of *network*; *tasks* has the code of each workload by its key.

    *bounds* are those of inputs, by name.

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
    controls, maker.values = controls_of(network, maker.values)
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
    held = bounds or {}
    inputs = tuple(replace(p, bound=held.get(p.name)) for p in _ports(network.inputs))
    return maker.plan(
        "model", inputs, _ports(network.results), arena=network.arena,
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
    raw: dict[int, tuple[int, Array]] = field(default_factory=dict)
    """Arrays and their numbers, by their identity; those in the pool are not needed once more."""
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
        number, _ = self.raw.setdefault(id(array), (len(self.raw), array))
        return Argument(MemoryRegion.RAW, number=number)

    def _sources(self) -> tuple[tuple[PlanStep, ...], tuple[Array, ...]]:
        """The packs, and what they read; that is in the pool where calls read it, too."""
        arrays = [array for _, array in self.raw.values()]
        direct = [self.pool.held.get((id(array), array.shape)) for array in arrays]
        left = [number for number, offset in enumerate(direct) if offset is None]
        places = {number: place for place, number in enumerate(left)}

        def found(argument: Argument) -> Argument:
            if argument.region is not MemoryRegion.RAW:
                return argument
            offset = direct[argument.number]
            if offset is None:
                return Argument(MemoryRegion.RAW, number=places[argument.number])
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
