"""A library's description of itself: a JSON string in its symbol ``<name>_metadata``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from ansorpy.errors import ForeignFile, UsageError
from ansorpy.ir.alias import Alias
from ansorpy.ir.extents import least
from ansorpy.ir.narrow import ElementType
from ansorpy.ir.symbols import Dim
from ansorpy.ir.text.extents import extent_of
from ansorpy.runtime.ports import MAX_RANK, Port
from ansorpy.runtime.sizes import told_by

__all__ = ["DimSpec", "Metadata", "ProgramSpec", "TensorSpec", "read_metadata"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DimSpec(_Part):
    """A dimension: its sizes are the multiples of ``step`` from ``low`` to ``high``."""

    name: str
    low: int
    high: int
    step: int

    def dim(self) -> Dim:
        """The dimension.

        Raises:
            UsageError: The range is impossible.
        """
        return Dim(self.name, self.low, self.high, self.step)


class TensorSpec(_Part):
    """One input or output (:class:`.Port`); extents are data of :mod:`ansorpy.ir.text.extents`,
    dimensions named.
    """

    name: str
    shape: tuple[int | list[Any], ...]
    dtype: ElementType
    bound: tuple[tuple[int, int], ...] | None = None


class AliasSpec(_Part):
    """An output that continues an input (:class:`ansorpy.ir.alias.Alias`)."""

    input: int
    output: int
    axis: int
    capacity: DimSpec | None = None


class _Machine(_Part):
    name: str
    triple: str
    cpu: str
    required: tuple[str, ...]

    @property
    def is_gpu(self) -> bool:
        """Whether its programs are for a GPU."""
        return self.cpu.startswith("sm_")


class ProgramSpec(_Part):
    """A program whose ``schedule`` is known (:mod:`ansorpy.runtime.schedules`).

    It has ``calls``, which depend on the dimensions named ``dims``; ``name`` is that of the first.
    """

    name: str
    schedule: str
    calls: int
    dims: tuple[str, ...]


class Metadata(_Part):
    """Description of a library; ``interface`` changes whenever the C interface does.

    ``digest`` identifies the linked code and constants: a library with another digest may compute
    something else.  ``programs`` are those that it was made from.  Calls state the sizes of
    ``dims``, apart from those named in ``counted``, which depend on data: runs count them.
    """

    format: Literal["ansorpy-library"] = "ansorpy-library"
    interface: Literal[2] = 2
    name: str
    kind: Literal["kernel", "model"]
    dims: tuple[DimSpec, ...]
    counted: tuple[str, ...] = ()
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    aliases: tuple[AliasSpec, ...] = ()
    target: _Machine
    threads: int
    median_ms: float | None
    constant_bytes: int
    programs: tuple[ProgramSpec, ...]
    ansorpy: str
    llvm: str
    digest: str

    @cached_property
    def input_ports(self) -> tuple[Port, ...]:
        return self._ports(self.inputs)

    @cached_property
    def output_ports(self) -> tuple[Port, ...]:
        return self._ports(self.outputs)

    @cached_property
    def port_aliases(self) -> tuple[Alias, ...]:
        """The outputs that share the memory of an input."""
        return tuple(
            Alias(a.input, a.output, a.axis, None if a.capacity is None else a.capacity.dim())
            for a in self.aliases
        )

    @cached_property
    def named_dims(self) -> dict[str, Dim]:
        """The dimensions by name."""
        return {spec.name: spec.dim() for spec in self.dims}

    def _ports(self, tensors: Sequence[TensorSpec]) -> tuple[Port, ...]:
        def dim(name: object) -> Dim:
            if isinstance(name, str) and name in self.named_dims:
                return self.named_dims[name]
            raise ValueError(f"{name!r:.40} is not a part of an extent")

        return tuple(
            Port(t.name, tuple(extent_of(n, dim) for n in t.shape), t.dtype.numpy, t.bound)
            for t in tensors
        )

    @model_validator(mode="after")
    def _has_shapes(self) -> Metadata:
        """Check that all extents can be read, and that the inputs tell all sizes."""
        try:
            if len(self.named_dims) < len(self.dims):
                raise ValueError("two dimensions have one name")
            for port in (*self.input_ports, *self.output_ports):
                if len(port.shape) > MAX_RANK or any(least(extent) < 0 for extent in port.shape):
                    raise ValueError(f"{port.name} cannot have the shape {port.shape}")
                if port.bound is not None and not _fits(port.bound, port):
                    raise ValueError(f"{port.name} cannot have the bounds {port.bound}")
            stated = (d for name, d in self.named_dims.items() if name not in self.counted)
            told_by(self.input_ports, tuple(stated))
            _check_aliases(self.port_aliases, self.input_ports, self.output_ports)
        except (UsageError, RecursionError) as error:
            raise ValueError(str(error)) from None
        return self


def _fits(bound: Sequence[tuple[int, int]], port: Port) -> bool:
    """Whether *bound* can be that of *port*: one range for all of its elements, or one for each."""
    count_fits = len(bound) == 1 or port.shape == (len(bound),)
    return bool(bound) and count_fits and all(0 <= low <= high for low, high in bound)


def _check_aliases(
    aliases: Sequence[Alias], inputs: Sequence[Port], outputs: Sequence[Port]
) -> None:
    """Raise ``ValueError`` if some tensors of *aliases* cannot share memory."""
    for numbers, ports in (
        ([a.input for a in aliases], inputs), ([a.output for a in aliases], outputs),
    ):  # fmt: skip
        if len(set(numbers)) < len(numbers) or not set(numbers) <= set(range(len(ports))):
            raise ValueError("a tensor that shares memory is missing, or shares it twice")
    for alias in aliases:
        given, made = inputs[alias.input], outputs[alias.output]
        rest = [p.shape[: alias.axis] + p.shape[alias.axis + 1 :] for p in (given, made)]
        inside = 0 <= alias.axis < len(given.shape)
        if not inside or rest[0] != rest[1] or given.dtype != made.dtype:
            raise ValueError(f"{made.name} and {given.name} cannot share memory")


def read_metadata(text: bytes, source: str) -> Metadata:
    """Parse *text*; raises :class:`ForeignFile` naming *source* if it is not valid metadata."""
    try:
        return Metadata.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "metadata"
        raise ForeignFile(
            f"{source} was made by another version of ansorpy: {where}: {first['msg']}",
            hint="compile the model again",
        ) from None
