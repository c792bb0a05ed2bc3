"""The kernels of a network with the sizes that their schedules serve, and what dimensions reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ansorpy.evaluation.tables import Table
from ansorpy.ir.extents import AnyExtent, dims_of
from ansorpy.ir.symbols import Dim
from ansorpy.schedule.state import State

__all__ = [
    "Reach", "ShownKernel", "kernels_table", "part_name", "reach_of", "reach_table", "sizes_text",
]  # fmt: skip


class _Tensor(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def shape(self) -> tuple[AnyExtent, ...]: ...


@dataclass(frozen=True)
class ShownKernel:
    """A kernel of a network.

    Args:
        name: That of its first call.
        calls: Number of its calls.
        dims: Names of the dimensions that its calls depend on.
        states: Its schedules, one for each part of the sizes; empty if none is chosen yet.
    """

    name: str
    calls: int
    dims: tuple[str, ...]
    states: tuple[State, ...] = ()

    def text(self, of: Callable[[State], str]) -> str:
        """The kernel's name, then the text *of* each schedule below the sizes that it serves.

        Sizes with the same text stand together.
        """
        lines = [self.name]
        by_text: dict[str, list[str]] = {}
        for state in self.states:
            by_text.setdefault(of(state), []).append(sizes_text(state))
        for text, sizes in by_text.items():
            lines += [f"{' and '.join(sizes)}:"] if all(sizes) else []
            lines.append(text)
        return "\n".join(lines)

    def to_dict(self, form: str, of: Callable[[State], str]) -> dict[str, Any]:
        """The kernel as JSON-serializable values, with the text *of* each schedule as *form*."""
        parts = [
            {"dims": [_dim(dim) for dim in state.definition.dims], form: of(state)}
            for state in self.states
        ]
        return {"name": self.name, "calls": self.calls, "dims": list(self.dims), "parts": parts}


def sizes_text(state: State) -> str:
    """The sizes that the schedule *state* serves: ``seq=1..35``; empty without dimensions."""
    return ", ".join(map(str, state.definition.dims))


def part_name(name: str, state: State) -> str:
    """The *name* of a kernel, with the sizes that its schedule *state* serves."""
    sizes = sizes_text(state)
    return f"{name}[{sizes}]" if sizes else name


def kernels_table(kernels: Sequence[ShownKernel]) -> Table:
    """One row for each part of the sizes of each kernel; the kernel is named in the first."""
    rows = []
    for number, kernel in enumerate(kernels):
        first = (str(number), kernel.name, str(kernel.calls))
        for state in kernel.states:
            rows.append((*first, sizes_text(state)))
            first = ("", "", "")
    return Table(
        "kernels", ("#", "kernel", "calls", "sizes"), tuple(rows), frozenset({"#", "calls"})
    )


@dataclass(frozen=True)
class Reach:
    """The inputs, outputs and kernels, by name, that depend on a dimension."""

    dim: Dim
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kernels: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The dimension and what it reaches, as JSON-serializable values."""
        return {
            **_dim(self.dim),
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
            "kernels": list(self.kernels),
        }


def reach_of(
    inputs: Sequence[_Tensor], outputs: Sequence[_Tensor], kernels: Sequence[ShownKernel]
) -> tuple[Reach, ...]:
    """What each dimension of *inputs* reaches, in order of appearance."""

    def reached(tensors: Sequence[_Tensor], dim: Dim) -> tuple[str, ...]:
        return tuple(tensor.name for tensor in tensors if dim in dims_of(tensor.shape))

    return tuple(
        Reach(
            dim, reached(inputs, dim), reached(outputs, dim),
            tuple(kernel.name for kernel in kernels if dim.name in kernel.dims),
        )
        for dim in dims_of(extent for tensor in inputs for extent in tensor.shape)
    )  # fmt: skip


def reach_table(reaches: Sequence[Reach], kernels: int) -> Table:
    """One row per dimension: its inputs and outputs, and how many of the *kernels* depend on it."""
    rows = tuple(
        (str(r.dim), ", ".join(r.inputs), ", ".join(r.outputs), f"{len(r.kernels)} of {kernels}")
        for r in reaches
    )
    return Table("dimensions", ("sizes", "inputs", "outputs", "kernels"), rows)


def _dim(dim: Dim) -> dict[str, Any]:
    return {"name": dim.name, "low": dim.low, "high": dim.high, "step": dim.step}
