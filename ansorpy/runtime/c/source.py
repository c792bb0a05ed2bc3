"""Write a plan as C11: its programs, its constants, and the functions of the C interface."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansorpy.codegen.c.emit import CFunctions, translation_unit
from ansorpy.codegen.c.packed import PACKING
from ansorpy.codegen.clike.comments import in_comment
from ansorpy.ir.alias import Alias
from ansorpy.ir.extents import dims_of
from ansorpy.ir.strides import ALIGNMENT_BYTES
from ansorpy.ir.symbols import Dim
from ansorpy.runtime.c.control import c_strides, controlled
from ansorpy.runtime.c.extents import c_count, c_extent, c_told, helpers, size_names
from ansorpy.runtime.control import Argument, MemoryRegion
from ansorpy.runtime.execution_plan import ExecutionPlan, PlanStep
from ansorpy.runtime.library.forms import constants_file
from ansorpy.runtime.ports import Port
from ansorpy.runtime.templates import rendered

__all__ = ["MOST_BYTES", "c_source", "is_apart", "quoted"]

MOST_BYTES = 1 << 16
"""Maximum size of constants written into the C file itself, which every compiler can read."""

_BYTES_A_LINE = 24

_FACTOR = 0x9E3779B97F4A7C15
"""An odd number, so that a change of any one word changes the checksum."""
_BLOCK_BYTES = 1 << 20


def is_apart(pool: NDArray[np.uint8]) -> bool:
    """Whether the constants *pool* are stored in a file of their own."""
    return pool.nbytes > MOST_BYTES


def c_source(
    plan: ExecutionPlan, name: str, pool: NDArray[np.uint8], source: Path, metadata: str = ""
) -> str:
    """The text of the C file *source*, which defines the program *name*.

    It includes ``<stem>.h`` and, if the constants are large, embeds the file that
    :func:`.constants_file` names.
    """
    programs = _programs(plan)
    names = size_names([*(told.dim for told in plan.told), *plan.capacities, *plan.counted])
    kinds = dict.fromkeys(step.dims for step in plan.steps if step.dims)
    arrays = {dims: f"sizes{n}" for n, dims in enumerate(kinds)}
    declared = "static int32_t {}(void *const *args, void *workspace, int32_t threads);"

    def place(argument: Argument) -> str:
        return _place(plan, argument, names)

    def call(step: PlanStep) -> dict[str, object]:
        own = [arrays[step.dims]] if step.dims else []
        return {
            "comment": in_comment(step.name or step.code.symbol),
            "symbol": programs[step.code.symbol].symbol,
            "arguments": [*map(place, step.args), *own],
        }

    return rendered(
        "c_program.c.j2",
        {
            "name": name,
            "upper": name.upper(),
            "header": f"{source.stem}.h",
            "binary": constants_file(source).name,
            "metadata": quoted(metadata),
            "alignment": ALIGNMENT_BYTES,
            "declarations": [declared.format(program.symbol) for program in programs.values()],
            "unit": translation_unit(list(programs.values())).rstrip(),
            "threaded": any(p.style.threads == "openmp" for p in programs.values()),
            "constants": [] if is_apart(pool) else list(_lines(pool)),
            "factor": _FACTOR,
            "checksum": _checksum(pool) if is_apart(pool) else 0,
            "pool_bytes": pool.nbytes,
            "arena_bytes": plan.arena_bytes,
            "steps": [
                part if isinstance(part, str) else call(plan.steps[part])
                for part in controlled(plan, names, arrays, place, f"{name.upper()}_OUT_OF_BOUNDS")
            ],
            **_sized(plan, names, arrays),
        },
    )  # fmt: skip


def _sized(
    plan: ExecutionPlan, names: Mapping[Dim, str], arrays: Mapping[tuple[Dim, ...], str]
) -> dict[str, object]:
    """What the template says about sizes and shapes, and functions that these expressions call."""
    values: dict[str, object] = {
        "sizes": [
            {
                "name": names[told.dim], "value": c_told(told), "low": told.dim.low,
                "high": told.dim.high, "step": told.dim.step,
                "comment": in_comment(told.dim.name),
            }
            for told in plan.told
        ],
        "inputs": [_port(n, port, names) for n, port in enumerate(plan.inputs)],
        "outputs": [
            _port(n, plan.at_most(port), names)
            | {"final": [c_extent(n, names) for n in port.shape] if plan.is_counted(port) else []}
            for n, port in enumerate(plan.outputs)
        ],
        "aliases": [_alias(plan, alias, names) for alias in plan.aliases],
        "capacities": [_capacity(dim, aliases, names) for dim, aliases in plan.capacities.items()],
        "slots": [{"bytes": c_extent(s.size_bytes, names), "behind": s.behind} for s in plan.slots],
        "workspaces": [
            (f"(size_t)({c_extent(shared, names)})" if dims_of([shared]) else shared, each)
            for shared, each in plan.workspaces if (shared, each) != (0, 0)
        ],
        "layout_sizes": [names[dim] for dim in dims_of(slot.size_bytes for slot in plan.slots)],
    }  # fmt: skip
    offsets = [c_extent(extent, names) for extent in plan.offsets]
    return {**values, "helpers": helpers(f"{values} {offsets}")}


def _port(number: int, port: Port, names: Mapping[Dim, str]) -> dict[str, object]:
    return {
        "number": number,
        "rank": len(port.shape),
        "shape": [c_extent(extent, names) for extent in port.shape],
        "count": c_count(port.shape, names),
        "is_sized": not isinstance(port.bytes, int),
    }


def _alias(plan: ExecutionPlan, alias: Alias, names: Mapping[Dim, str]) -> dict[str, object]:
    """What the template says about an output that shares the memory of an input.

    Strides are made of its extents, unless they are dense at every capacity.
    """
    shape = plan.outputs[alias.output].shape if plan.is_apart(alias) else ()
    checked = [
        (axis, c_extent(extent, names))
        for axis, extent in enumerate(shape)
        if axis != alias.axis or alias.capacity is None
    ]
    return {"input": alias.input, "output": alias.output, "extents": checked}


def _capacity(dim: Dim, aliases: Sequence[Alias], names: Mapping[Dim, str]) -> dict[str, object]:
    first, *others = (f"outputs[{a.output}].shape[{a.axis}]" for a in aliases)
    return {
        "name": names[dim], "value": first, "others": others, "high": dim.high,
        "comment": in_comment(dim.name),
    }  # fmt: skip


def _programs(plan: ExecutionPlan) -> dict[str, CFunctions]:
    """The functions of each program that *plan* calls, by symbol."""
    steps: dict[str, PlanStep] = {step.code.symbol: step for step in plan.steps}
    return {symbol: PACKING.unpack(step.code.code)[0] for symbol, step in steps.items()}


def _lines(pool: NDArray[np.uint8]) -> Iterator[str]:
    for start in range(0, pool.nbytes, _BYTES_A_LINE):
        yield "".join(f"{byte}," for byte in pool[start : start + _BYTES_A_LINE].tolist())


def _checksum(pool: NDArray[np.uint8]) -> int:
    """The polynomial with the words of *pool* as coefficients, at ``_FACTOR``, modulo 2**64.

    Words are little-endian and have 8 bytes; the last one is padded with zeros.
    """
    total = 0
    for start in range(0, pool.nbytes, _BLOCK_BYTES):
        block = pool[start : start + _BLOCK_BYTES]
        words = np.zeros(-(-block.nbytes // 8), "<u8")
        words.view(np.uint8)[: block.nbytes] = block
        powers = np.full(words.size, _FACTOR, np.uint64)
        powers[0] = 1
        rest = int(np.dot(words, np.cumprod(powers, dtype=np.uint64)[::-1]))
        total = (total * pow(_FACTOR, words.size, 1 << 64) + rest) % (1 << 64)
    return total


def quoted(text: str) -> str:
    """*text* as a C string without trigraphs, in pieces short enough for every compiler."""
    pieces = [text[start : start + 400] for start in range(0, len(text), 400)] or [""]
    texts = (json.dumps(piece, ensure_ascii=False).replace("?", "\\?") for piece in pieces)
    return "\n    ".join(texts)


def _place(plan: ExecutionPlan, argument: Argument, names: Mapping[Dim, str]) -> str:
    """C expression for the address of *argument*."""
    match argument.region:
        case MemoryRegion.INPUT:
            base = f"(unsigned char *)inputs[{argument.number}].data"
        case MemoryRegion.OUTPUT:
            base = f"(unsigned char *)outputs[{argument.number}].data"
        case MemoryRegion.ARENA:
            base = f"arena + places[{argument.number}]" if plan.slots else "arena"
        case MemoryRegion.MOVING:
            base = f"moving{argument.number}"
        case MemoryRegion.POOL:
            return f"(void *)(constants + {argument.offset})"
        case MemoryRegion.RAW | MemoryRegion.SCRATCH:
            raise AssertionError("no call of a run reads data that only packing needs")
    return f"{base} + {c_extent(argument.offset, names)}{c_strides(argument.strides, names)}"
