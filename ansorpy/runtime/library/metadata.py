"""A library's description of itself: a JSON string in its symbol ``<name>_metadata``."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from ansorpy.errors import ForeignFile
from ansorpy.ir.dtypes import DType
from ansorpy.runtime.ports import Port

__all__ = ["Metadata", "TensorSpec", "read_metadata"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TensorSpec(_Part):
    """One input or output."""

    name: str
    shape: tuple[int, ...]
    dtype: DType

    def port(self) -> Port:
        return Port(self.name, self.shape, self.dtype.numpy)


class _Machine(_Part):
    name: str
    triple: str
    cpu: str
    required: tuple[str, ...]


class Metadata(_Part):
    """Description of a library; ``interface`` changes whenever the C interface does.

    ``digest`` identifies the linked code and constants: a library with another digest may compute
    something else.  ``programs`` holds the schedules it was made from, by name
    (:mod:`ansorpy.runtime.schedules`).
    """

    format: Literal["ansorpy-library"] = "ansorpy-library"
    interface: Literal[1] = 1
    name: str
    kind: Literal["kernel", "model"]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    target: _Machine
    threads: int
    median_ms: float | None
    constant_bytes: int
    programs: dict[str, str]
    ansorpy: str
    llvm: str
    digest: str

    @property
    def input_ports(self) -> tuple[Port, ...]:
        return tuple(tensor.port() for tensor in self.inputs)

    @property
    def output_ports(self) -> tuple[Port, ...]:
        return tuple(tensor.port() for tensor in self.outputs)


def read_metadata(text: bytes, source: str) -> Metadata:
    """Parse *text*; raises :class:`ForeignFile` naming *source* if it is not valid metadata."""
    try:
        return Metadata.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ForeignFile(
            f"{source} was made by another version of ansorpy: {where}: {first['msg']}",
            hint="compile the model again",
        ) from None
