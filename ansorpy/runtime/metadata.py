"""A library's description of itself: a JSON string in its symbol ``<name>_metadata``."""

from __future__ import annotations

import hashlib
from typing import Literal

import llvmlite.binding
import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from ansorpy import __version__
from ansorpy.errors import ForeignFile
from ansorpy.ir.dtypes import DType
from ansorpy.runtime.cpu import required_features
from ansorpy.runtime.plan import Plan
from ansorpy.runtime.ports import Port
from ansorpy.target import Target

__all__ = ["Metadata", "TensorSpec", "metadata_of", "read_metadata"]


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

    ``digest`` is of what was linked: code of another digest computes something else.
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
    ansorpy: str
    llvm: str
    digest: str

    @property
    def input_ports(self) -> tuple[Port, ...]:
        return tuple(tensor.port() for tensor in self.inputs)

    @property
    def output_ports(self) -> tuple[Port, ...]:
        return tuple(tensor.port() for tensor in self.outputs)


def metadata_of(plan: Plan, name: str, entry: str, constants: bytes) -> Metadata:
    """Describe *plan* as library *name*.

    Args:
        entry: Source of the library's functions, which says what its calls read and write.
        constants: A digest of its constants.
    """
    content = hashlib.sha256(constants)
    content.update(entry.encode())
    for code in plan.objects:
        content.update(code.digest.encode())
    return Metadata.model_validate(
        {
            "name": name,
            "kind": plan.kind,
            "inputs": [_tensor(port) for port in plan.inputs],
            "outputs": [_tensor(port) for port in plan.outputs],
            "target": {
                "name": plan.target.name,
                "triple": plan.target.triple or Target.host().triple,  # a GPU's host code
                "cpu": plan.target.cpu,
                "required": required_features(plan.target),
            },
            "threads": plan.threads,
            "median_ms": None if plan.median_s is None else plan.median_s * 1e3,
            "constant_bytes": plan.pool_bytes,
            "ansorpy": __version__,
            "llvm": ".".join(map(str, llvmlite.binding.llvm_version_info)),
            "digest": content.hexdigest(),
        }
    )


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


def _tensor(port: Port) -> dict[str, object]:
    return {"name": port.name, "shape": port.shape, "dtype": np.dtype(port.dtype).name}
