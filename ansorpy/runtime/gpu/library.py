"""Turn a GPU plan into objects to link: cubins, constants, and C that calls the CUDA driver."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansorpy.codegen.cuda.launch.packed import unpacked
from ansorpy.codegen.cuda.launch.plan import LaunchPlan
from ansorpy.codegen.llvm.objects.build import compile_ir
from ansorpy.runtime.execution_plan import Argument, ExecutionPlan, Memory, Step
from ansorpy.runtime.library.data_object import write_data_object
from ansorpy.runtime.library.linker import Linker
from ansorpy.runtime.ports import MAX_RANK
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
        write_data_object(files[-1], like, module.symbol, [module.cubin], is_written=False)
    if pool.nbytes:
        files.append(folder / "constants.o")
        write_data_object(files[-1], like, f"{name}_pool_data", [pool.data], is_written=False)
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
    sizes = [module.plan.workspace_bytes for module in numbered]
    return rendered(
        "cuda_library.c.j2",
        {
            "name": name,
            "metadata": json.dumps(metadata, ensure_ascii=False),
            "statuses": list(Status),
            "max_rank": MAX_RANK,
            "inputs": plan.inputs,
            "outputs": plan.outputs,
            "modules": [module.symbol for module in numbered],
            "kernels": kernels,
            "launches": [f for step in plan.steps for f in _launches(step, modules)],
            "arena_bytes": max(1, plan.arena_bytes),
            "workspace_bytes": max(1, *sizes),
            "pool_bytes": plan.pool_bytes,
        },
    )


def _modules(plan: ExecutionPlan, name: str) -> dict[str, _Module]:
    """The distinct cubins by digest, in the order of their first calls."""
    found: dict[str, _Module] = {}
    first = 0
    for step in plan.steps:
        if step.code.digest not in found:
            launches, cubin = unpacked(step.code.code)
            symbol = f"{name}_cubin_{len(found)}"
            found[step.code.digest] = _Module(symbol, launches, cubin, first)
            first += len(launches.launches)
    return found


def _launches(step: Step, modules: dict[str, _Module]) -> Iterator[dict[str, object]]:
    module = modules[step.code.digest]
    for number, launch in enumerate(module.plan.launches):
        yield {
            "comment": (step.name or launch.kernel).replace("*/", "* /").replace("\n", " "),
            "kernel": module.first + number,
            "grid": launch.grid,
            "block": launch.block,
            "shared": launch.dynamic_shared_bytes,
            "arguments": [
                _place(step.args[a.position]) if a.place == "parameter"
                else f"s->workspace + {a.position}"
                for a in launch.arguments
            ],
        }  # fmt: skip


def _place(argument: Argument) -> str:
    """C expression for the address of *argument*."""
    match argument.region:
        case Memory.INPUT:
            base = f"s->in[{argument.number}]"
        case Memory.OUTPUT:
            base = f"s->out[{argument.number}]"
        case Memory.ARENA:
            base = "s->arena"
        case Memory.POOL:
            base = "pool"
        case Memory.RAW:
            raise AssertionError("no call of a run reads data that only packing needs")
    return f"{base} + {argument.offset}"
