"""The runtime of GPU programs: launched by this process, or by a library through the driver."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansorpy.codegen.cuda.device.driver import device_for
from ansorpy.codegen.cuda.launch.packed import PACKING
from ansorpy.codegen.object_code import ObjectCode
from ansorpy.errors import AnsorpyError, MissingDependency, UsageError
from ansorpy.runtime.backends import TimedCalls, TracedCalls
from ansorpy.runtime.constants import make_pool
from ansorpy.runtime.describe import metadata_of
from ansorpy.runtime.execution_plan import ExecutionPlan
from ansorpy.runtime.footprint import Footprint
from ansorpy.runtime.gpu.branches import ordered, workspaces
from ansorpy.runtime.gpu.executable import GpuExecutable, TimedGpuExecutable
from ansorpy.runtime.gpu.library import LIBRARIES, cuda_objects, cuda_source
from ansorpy.runtime.gpu.operands import accept_operand, check_operand
from ansorpy.runtime.library.forms import Form, Pack, form_of
from ansorpy.runtime.library.linker import find_linker, library_name, linking, refuse_size
from ansorpy.runtime.library.metadata import Metadata
from ansorpy.runtime.model import Operands
from ansorpy.target import Target

__all__ = ["GpuRuntime"]


class GpuRuntime:
    """Cubins and their launches (:class:`ansorpy.runtime.backends.Runtime`)."""

    packs_at_init = False
    operands = Operands(accept_operand, check_operand)

    def load(self, plan: ExecutionPlan, pool: NDArray[np.uint8], name: str) -> GpuExecutable:
        return GpuExecutable(plan, pool, device_for(plan.target))

    def timed(self, plan: ExecutionPlan, pool: NDArray[np.uint8]) -> TimedCalls:
        executable = TimedGpuExecutable(plan, pool, device_for(plan.target))
        return TimedCalls(executable, executable.spent_ns)

    def traced(self, plan: ExecutionPlan, pool: NDArray[np.uint8]) -> TracedCalls:
        raise UsageError(
            "what runs on a GPU cannot be traced here",
            hint="use nsys, or the times of bench --profile",
        )

    def footprint(self, plan: ExecutionPlan) -> Footprint:
        return replace(plan.footprint, workspace=sum(workspaces(plan.steps, ordered(plan))))

    def kernels(self, code: ObjectCode, sizes: Sequence[int]) -> int:
        return len(PACKING.unpack(code.code)[0].at(sizes))

    def refusal(self, target: Target, name: str) -> AnsorpyError:
        return MissingDependency(
            f"{name} is for {target.cpu}, and this machine has no GPU that runs it"
        )

    def require_export(self, path: Path, target: Target) -> None:
        if form_of(path) is not Form.SO:
            raise UsageError(
                f"programs for {target.name} are written as shared libraries alone, not as "
                f"{path.name}",
                hint="let the name end in .so",
            )
        find_linker(Target.host())

    def export(self, plan: ExecutionPlan, path: Path, pack: Pack | None) -> Metadata:
        """Write the library *path*; the constants are packed here, on this machine's CPU."""
        name, linker = library_name(path), find_linker(Target.host())
        packed = make_pool(plan, name)
        refuse_size(packed.nbytes, plan.target)
        constants = hashlib.sha256(packed.data).digest()
        entry, triple = cuda_source(plan, name, metadata=""), Target.host().triple
        metadata = metadata_of(plan, name, entry, constants, triple)
        with linking(name, path, linker) as link:
            text = metadata.model_dump_json()
            files = cuda_objects(plan, name, text, packed, link.folder, linker)
            link.link(files, needs=LIBRARIES)
        return metadata
