"""Turn a GPU plan into objects to link: cubins, constants, and C that calls the CUDA driver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansorpy.codegen.clike.comments import in_comment
from ansorpy.codegen.cuda.launch.packed import PACKING
from ansorpy.codegen.cuda.launch.plan import STRIDE_UNIT, Encoding, LaunchPlan
from ansorpy.codegen.cuda.launch.plan import Argument as LaunchArgument
from ansorpy.codegen.llvm.objects.build import compile_ir
from ansorpy.ir.extents import Extent, least, most
from ansorpy.ir.symbols import Dim
from ansorpy.runtime.c.extents import c_extent, c_told, helpers
from ansorpy.runtime.c.source import quoted
from ansorpy.runtime.control import Argument, MemoryRegion
from ansorpy.runtime.execution_plan import ExecutionPlan, PlanStep
from ansorpy.runtime.library.data_object import write_data_object
from ansorpy.runtime.library.linker import Linker
from ansorpy.runtime.ports import MAX_RANK, Port
from ansorpy.runtime.sizes import Told
from ansorpy.runtime.status import Status
from ansorpy.runtime.templates import rendered
from ansorpy.target import Target

__all__ = ["LIBRARIES", "cuda_objects", "cuda_source"]

LIBRARIES = ("-ldl", "-pthread")
"""Libraries that the C code needs besides libc on systems with an old libc."""


@dataclass(frozen=True)
class _Module:
    """One cubin: its symbol, and the index of its first kernel among all kernels."""

    symbol: str
    plan: LaunchPlan
    cubin: bytes
    first: int


def cuda_objects(
    plan: ExecutionPlan,
    name: str,
    metadata: str,
    pool: NDArray[np.uint8],
    folder: Path,
    linker: Linker,
) -> list[Path]:
    """Write to *folder* the objects of library *name* for *plan* with constants *pool*."""
    like = compile_ir("", Target.host())
    files = []
    for module in _modules(plan, name).values():
        files.append(folder / f"{module.symbol}.o")
        write_data_object(files[-1], like, module.symbol, [module.cubin])
    if pool.nbytes:
        files.append(folder / "constants.o")
        write_data_object(files[-1], like, f"{name}_pool_data", [pool.data])
    source = folder / "entry.c"
    source.write_text(cuda_source(plan, name, metadata), encoding="utf-8")
    files.append(folder / "entry.o")
    linker.compile_c(source, files[-1])
    return files


def cuda_source(plan: ExecutionPlan, name: str, metadata: str) -> str:
    """C source of the library's entry: the GPU counterpart of :mod:`ansorpy.runtime.entry`."""
    modules = _modules(plan, name)
    numbered = list(modules.values())
    kernels = [
        {"module": number, "name": launch.kernel, "shared": launch.dynamic_shared_bytes}
        for number, module in enumerate(numbered) for launch in module.plan.launches
    ]  # fmt: skip
    workspaces = [module.plan.workspace_bytes for module in numbered]
    names = {told.dim: f"sizes[{n}]" for n, told in enumerate(plan.told)}
    launches = [f for step in plan.steps for f in _launches(plan, step, modules, names)]
    sized: dict[str, object] = {
        "sizes": [_size(told) for told in plan.told],
        "inputs": [_port(port, names) for port in plan.inputs],
        "outputs": [_port(port, names) for port in plan.outputs],
        "launches": launches,
    }
    return rendered(
        "cuda_library.c.j2",
        {
            "name": name,
            "metadata": quoted(metadata),
            "statuses": list(Status),
            "max_rank": MAX_RANK,
            "modules": [module.symbol for module in numbered],
            "kernels": kernels,
            "arena_bytes": max(1, plan.arena_bytes),
            "workspace_bytes": max([1, *workspaces]),
            "pool_bytes": plan.pool_bytes,
            "helpers": helpers(str(sized)),
            "has_maps": any(launch["maps"] for launch in launches),
            **sized,
        },
    )


def _modules(plan: ExecutionPlan, name: str) -> dict[str, _Module]:
    """The distinct cubins by digest, in the order of their first calls."""
    found: dict[str, _Module] = {}
    first = 0
    for step in plan.steps:
        if step.code.digest not in found:
            launches, cubin = PACKING.unpack(step.code.code)
            symbol = f"{name}_cubin_{len(found)}"
            found[step.code.digest] = _Module(symbol, launches, cubin, first)
            first += len(launches.launches)
    return found


def _size(told: Told) -> dict[str, object]:
    """Where a call states a size, and which sizes it may state."""
    dim = told.dim
    return {
        "value": c_told(told), "low": dim.low, "high": dim.high, "step": dim.step,
        "comment": in_comment(dim.name),
    }  # fmt: skip


def _port(port: Port, names: Mapping[Dim, str]) -> dict[str, object]:
    """The shape and the bytes of an input or output, and its bytes at the largest sizes."""
    return {
        "shape": [c_extent(extent, names) for extent in port.shape],
        "bytes": c_extent(port.bytes, names),
        "room": most(port.bytes),
    }


def _launches(
    plan: ExecutionPlan, step: PlanStep, modules: Mapping[str, _Module], names: Mapping[Dim, str]
) -> Iterator[dict[str, object]]:
    module = modules[step.code.digest]
    starts, own = plan.slot_starts, dict(zip(module.plan.dims, step.dims, strict=True))
    # The code has names of its own for the sizes that this call states.
    inside = {**names, **{dim: names[stated] for dim, stated in own.items()}}

    def value(argument: LaunchArgument) -> str:
        if argument.place == "size":
            return f"(address){names[step.dims[argument.position]]}"
        if argument.place == "workspace":
            return f"s->workspace + {argument.position}"
        return _place(step.args[argument.position], starts, names)

    for number, launch in enumerate(module.plan.launches):
        positive = [extent for extent in (*launch.grid, *launch.where) if least(extent) < 1]
        yield {
            "comment": in_comment(step.name or launch.kernel),
            "condition": " && ".join(f"{c_extent(extent, inside)} > 0" for extent in positive),
            "kernel": module.first + number,
            "grid": [c_extent(extent, inside) for extent in launch.grid],
            "block": launch.block,
            "shared": launch.dynamic_shared_bytes,
            "arguments": [value(argument) for argument in launch.arguments],
            "maps": [
                _map(n, argument.boxes.encoding, inside)
                for n, argument in enumerate(launch.arguments)
                if argument.boxes is not None
            ],
        }


def _map(number: int, map_of: Encoding, names: Mapping[Dim, str]) -> dict[str, object]:
    """A tensor map that a kernel receives as argument *number*."""

    def positive(extent: Extent, smallest: int) -> str:
        text = c_extent(extent, names)
        return text if isinstance(extent, int) else f"({text} > 0 ? {text} : {smallest})"

    return {
        **map_of._asdict(), "argument": number,
        "extents": [positive(extent, 1) for extent in map_of.extents],
        "strides": [positive(stride, STRIDE_UNIT) for stride in map_of.strides],
    }  # fmt: skip


def _place(argument: Argument, starts: Sequence[int], names: Mapping[Dim, str]) -> str:
    """C expression for the address of *argument*."""
    match argument.region:
        case MemoryRegion.INPUT:
            base = f"s->in[{argument.number}]"
        case MemoryRegion.OUTPUT:
            base = f"s->out[{argument.number}]"
        case MemoryRegion.ARENA:
            base = f"s->arena + {starts[argument.number]}" if starts else "s->arena"
        case MemoryRegion.POOL:
            base = "pool"
        case MemoryRegion.RAW | MemoryRegion.SCRATCH:
            raise AssertionError("no call of a run reads data that only packing needs")
    return f"{base} + {c_extent(argument.offset, names)}"
