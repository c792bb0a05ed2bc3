"""Resources that kernels need on an SM, checked against the target's limits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ansorpy.codegen.cuda.launch.plan import Launch, LaunchPlan
from ansorpy.errors import CodegenError
from ansorpy.ir.extents import most
from ansorpy.target import Target

__all__ = ["KernelResources", "check_launch", "check_resources", "parse_report"]

MAX_GRID = ((1 << 31) - 1, (1 << 16) - 1, (1 << 16) - 1)
"""Maximum blocks along x, y and z, on every GPU."""
MAX_BLOCK = (1024, 1024, 64)
REGISTER_UNIT = 256
"""Registers are allocated to warps in multiples of this number."""


@dataclass(frozen=True)
class KernelResources:
    """Resources of one kernel as reported by the assembler; all but shared memory are per thread.

    ``spilled_bytes`` are stored and loaded for lack of registers; ``stack_bytes`` are the arrays in
    memory that are indexed at run time.
    """

    kernel: str
    registers: int
    spilled_bytes: int
    stack_bytes: int
    shared_bytes: int


_KERNEL = re.compile(r"Compiling entry function '(\w+)' for")
_NUMBERS = {
    "registers": re.compile(r"Used (\d+) registers"),
    "spilled_bytes": re.compile(r"(\d+) bytes spill (?:stores|loads)"),
    "stack_bytes": re.compile(r"(\d+) bytes stack frame"),
    "shared_bytes": re.compile(r"(\d+) bytes smem"),
}


def parse_report(report: str, plan: LaunchPlan) -> tuple[KernelResources, ...]:
    """The resources of *plan*'s kernels, in its order, from the assembler's *report* (``-v``).

    A kernel is omitted if the report does not state its registers; whether it fits then shows when
    it is launched.
    """
    found = dict(_kernels(report))
    return tuple(
        KernelResources(launch.kernel, **{kind: numbers.get(kind, 0) for kind in _NUMBERS})
        for launch in plan.launches
        if "registers" in (numbers := found.get(launch.kernel, {}))
    )


def _kernels(report: str) -> Iterator[tuple[str, Mapping[str, int]]]:
    parts = _KERNEL.split(report)
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        numbers = {
            kind: sum(int(number) for number in pattern.findall(text))
            for kind, pattern in _NUMBERS.items()
            if pattern.search(text)
        }
        yield name, numbers


def check_launch(launch: Launch, target: Target) -> None:
    """Check that blocks of *launch* fit on *target*, apart from registers, at all sizes.

    Raises:
        CodegenError: Too many threads or blocks, or too much shared memory.
    """
    if launch.threads > target.max_threads_per_block:
        raise _too_much(launch, "threads per block", launch.threads, target.max_threads_per_block)
    if launch.shared_bytes > target.max_shared_optin_bytes:
        raise _too_much(
            launch, "bytes of shared memory", launch.shared_bytes, target.max_shared_optin_bytes
        )
    for what, wanted, limits in (
        ("blocks", launch.grid, MAX_GRID), ("threads", launch.block, MAX_BLOCK),
    ):  # fmt: skip
        for axis, number, limit in zip("xyz", wanted, limits, strict=True):
            if most(number) > limit:
                raise _too_much(launch, f"{what} along {axis}", most(number), limit)


def check_resources(launch: Launch, resources: KernelResources, target: Target) -> None:
    """Check that the target has enough registers for a block of *launch*.

    Raises:
        CodegenError: It has too few.
    """
    warps = -(-launch.threads // target.warp_size)
    each = -(-resources.registers * target.warp_size // REGISTER_UNIT) * REGISTER_UNIT
    if resources.registers > target.vector_registers:
        raise _too_much(
            launch, "registers per thread", resources.registers, target.vector_registers
        )
    if warps * each > target.registers_per_block:
        raise _too_much(launch, "registers", warps * each, target.registers_per_block)


def _too_much(launch: Launch, what: str, wanted: int, limit: int) -> CodegenError:
    return CodegenError(f"{launch.kernel} needs {wanted} {what}, but the limit is {limit}")
