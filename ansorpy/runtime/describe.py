"""Make the metadata of an exported library."""

from __future__ import annotations

import hashlib
from dataclasses import asdict

import llvmlite.binding
import numpy as np

from ansorpy.ir.text.extents import extent_data
from ansorpy.runtime.cpu_features import required_features
from ansorpy.runtime.execution_plan import ExecutionPlan
from ansorpy.runtime.library.metadata import Metadata
from ansorpy.runtime.ports import Port
from ansorpy.version import __version__

__all__ = ["metadata_of"]


def metadata_of(
    plan: ExecutionPlan, name: str, entry: str, constants: bytes, triple: str
) -> Metadata:
    """Describe *plan* as library *name*.

    Args:
        entry: Source of the library's functions, which determines what its calls read and write.
        constants: A digest of its constants.
        triple: The machine that its functions are compiled for; empty if they are still source.
    """
    content = hashlib.sha256(constants)
    content.update(entry.encode())
    for code in plan.objects:
        content.update(code.digest.encode())
    return Metadata.model_validate(
        {
            "name": name,
            "kind": plan.kind,
            "dims": [asdict(dim) for dim in (*(told.dim for told in plan.told), *plan.counted)],
            "counted": [dim.name for dim in plan.counted],
            "inputs": [_tensor(port) for port in plan.inputs],
            "outputs": [_tensor(port) for port in plan.outputs],
            "aliases": list(map(asdict, plan.aliases)),
            "target": {
                "name": plan.target.name,
                "triple": triple,
                "cpu": plan.target.cpu,
                "required": required_features(plan.target),
            },
            "threads": plan.threads,
            "median_ms": None if plan.median_s is None else plan.median_s * 1e3,
            "constant_bytes": plan.pool_bytes,
            "programs": [asdict(program) for program in plan.programs],
            "ansorpy": __version__,
            "llvm": ".".join(map(str, llvmlite.binding.llvm_version_info)),
            "digest": content.hexdigest(),
        }
    )


def _tensor(port: Port) -> dict[str, object]:
    shape = [extent_data(extent, lambda dim: dim.name) for extent in port.shape]
    dtype = np.dtype(port.dtype).name
    return {"name": port.name, "shape": shape, "dtype": dtype, "bound": port.bound}
