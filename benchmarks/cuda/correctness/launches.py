"""Launch stored programs once each, for tools that watch the GPU's memory.

python -m benchmarks.cuda.correctness.launches FOLDER

Arguments are allocated without room around them, so that a tool sees every access beyond them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ansorpy.codegen.cuda.device.driver import CudaDevice
from ansorpy.codegen.cuda.device.protocol import Device, launch_all
from ansorpy.codegen.cuda.launch.packed import PACKING
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.text.serialize import dag_from_dict, dag_to_dict
from ansorpy.measure.build.built import Built, built_from_parts
from ansorpy.measure.run.inputs import drawn_inputs

__all__ = ["launch_stored", "main", "store"]


def store(folder: Path, number: int, dag: ComputeDAG, built: Built) -> None:
    """Store *built*, a program of *dag* that packs no constants, as number *number*."""
    header, [code] = built.parts()
    text = json.dumps({"dag": dag_to_dict(dag), "built": header})
    (folder / f"{number}.json").write_text(text)
    (folder / f"{number}.bin").write_bytes(code)


def launch_stored(folder: Path, device: Device) -> int:
    """Launch every program in *folder*; returns their number."""
    files = sorted(folder.glob("*.json"))
    for file in files:
        made = json.loads(file.read_text())
        built = built_from_parts(made["built"], [file.with_suffix(".bin").read_bytes()])
        _launch(dag_from_dict(made["dag"]), built, device)
    return len(files)


def _launch(dag: ComputeDAG, built: Built, device: Device) -> None:
    plan, cubin = PACKING.unpack(built.run.code)
    given = {op.name: values for op, values in drawn_inputs(dag, 0)}
    places = []
    for spec in built.run_params:
        assert spec.strides is None, spec
        place = device.allocate(spec.bytes)
        if spec.name in given:
            device.upload(place, np.ascontiguousarray(given[spec.name]))
        places.append(place)
    workspace = device.allocate(plan.workspace_bytes)
    module = device.load(cubin)
    launch_all(device, module, plan, places, workspace, built.sizes)
    device.synchronise()
    device.unload(module)
    for place in (*places, workspace):
        device.release(place)


def main(folder: str, device: Callable[[], Device] = CudaDevice) -> None:
    """Launch what *folder* has, and print how many programs that was."""
    print(launch_stored(Path(folder), device()))


if __name__ == "__main__":
    main(sys.argv[1])
