"""Checks with programs that fail, with networks, and with tools that watch the GPU's memory.

python -m benchmarks.cuda.correctness.checks NAME      # one check, in this process
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import count, islice
from pathlib import Path
from shutil import which

import numpy as np
import onnx

import ansorpy
from ansorpy.codegen.cuda.device.driver import CudaDevice
from ansorpy.errors import CodegenError, ScheduleError
from ansorpy.evaluation.inputs import random_value
from ansorpy.evaluation.onnx_edit import softmax_inputs_as_outputs
from ansorpy.evaluation.verify import compare_outputs
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.rewrite.sizes import dag_at
from ansorpy.ir.task import Task
from ansorpy.measure.build.built import Built
from ansorpy.measure.gpu.runner import Gpu, GpuRunner
from ansorpy.measure.result import TrialKind
from ansorpy.measure.run.runner import MeasureOptions
from ansorpy.target import Target
from benchmarks.cuda.correctness.launches import store
from benchmarks.cuda.smoke.machine import Fault, Skipped, SmokeGpu, blocked, doubling
from benchmarks.cuda.smoke.planting import PlantingBuilder, planted_state
from benchmarks.cuda.smoke.stage import check_one
from benchmarks.zoo import WRITTEN
from benchmarks.zoo.light import light_model
from tests.campaigns.device import drawn_programs

__all__ = ["CHECKS", "PLANTED", "agree", "planted", "watched"]

_HANGS_S = 10.0
"""Seconds that a program may run where one does not return."""
_WATCHED = 50
"""Programs that a tool watches."""
_TOOLS = ("/usr/local/cuda/bin",)
_SANITIZER = "compute-sanitizer"
_FOUND = 9
"""The exit code that the sanitizer is asked for when it finds an error."""
_TOLERANCE = 1e-4
"""Of a network's outputs, relative to the largest: sums of up to a hundred layers are reordered."""
_NETWORKS: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "squeezenet": partial(light_model, "squeezenet", 0),
    **{name: partial(WRITTEN[name], 1, 0) for name in ("mobilenet_v2", "vit_tiny", "lstm_tagger")},
    "shufflenet": partial(light_model, "shufflenet", 0),
    "bert_base": partial(WRITTEN["bert_base"], 1, 0),
    **{name: partial(light_model, name, 0) for name in ("resnet50", "inception_v1", "densenet121")},
}
PLANTED: Mapping[Fault, TrialKind] = {
    "crash": TrialKind.CRASH, "hang": TrialKind.TIMEOUT, "wrong": TrialKind.WRONG_RESULT,
}  # fmt: skip
"""What a program with each fault is recorded as."""


def planted(fault: Fault, kind: TrialKind, hangs_s: float = _HANGS_S) -> Callable[[SmokeGpu], str]:
    """A program with *fault* is recorded as *kind*, and the next one is measured.

    One that does not return is given up after *hangs_s*.
    """

    def check(gpu: SmokeGpu) -> str:
        task = Task(ComputeDAG.of(doubling()), gpu.target, 1, name="doubling")
        with tempfile.TemporaryDirectory() as folder:
            options = MeasureOptions(builders=1, lock_folder=Path(folder))
            if fault == "hang":
                options = replace(options, run_timeout_s=hangs_s)
            builder = PlantingBuilder(gpu, fault)
            with GpuRunner([Gpu(0, "planted")], options, builder, module=gpu.worker) as runner:
                states = [blocked(), planted_state(), blocked(64)]
                first, bad, after = runner.measure(task, states, incumbent_s=None)
        assert first.ok, f"a correct program is {first.kind.value}: {first.reason}"
        assert bad.kind is kind, f"{fault} is recorded as {bad.kind.value}: {bad.reason}"
        assert after.ok, f"the program after it is {after.kind.value}: {after.reason}"
        return f"{bad.kind.value}: {bad.reason}".splitlines()[0]

    return check


def _network(make: Callable[[], onnx.ModelProto]) -> Callable[[SmokeGpu], str]:
    def check(gpu: SmokeGpu) -> str:
        if not isinstance(gpu.device, CudaDevice):
            raise Skipped("only a real GPU can run networks")
        return agree(make(), gpu.target)

    return check


def agree(network: onnx.ModelProto, target: Target) -> str:
    """Compare *network*, compiled without a search for *target*, with onnxruntime on the CPU."""
    try:
        import onnxruntime
    except ImportError as error:
        raise Skipped(
            f"it is compared with onnxruntime, which is not installed ({error})"
        ) from None
    model, softmaxes = softmax_inputs_as_outputs(network)
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "none.db"
        ours = ansorpy.compile(model, effort="none", db=db, target=target)
    feeds = {p.name: random_value(p.shape, p.dtype, 0, p.name) for p in ours.get_inputs()}
    names = [port.name for port in ours.get_outputs()]
    theirs = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    want = dict(zip(names, theirs.run(names, feeds), strict=True))
    for _ in range(3):  # launched, captured, replayed
        got = dict(zip(names, ours.run(names, feeds), strict=True))
        found = compare_outputs("the network", "onnxruntime", got, want, softmaxes, _TOLERANCE)
        worst = max(found.checks, key=lambda check: check.error)
        assert found.ok, f"{worst.name} differs by {worst.error:.2g}: {worst.problem}"
    return f"differs by {worst.error:.1e} of the largest value"


def watched(tool: str, programs: int) -> Callable[[SmokeGpu], str]:
    """The sanitizer's *tool* finds nothing in random programs, each launched once."""

    def check(gpu: SmokeGpu) -> str:
        sanitizer = which(_SANITIZER) or next(
            (found for folder in _TOOLS if (found := which(_SANITIZER, path=folder))), None
        )
        if sanitizer is None:
            raise Skipped(f"{_SANITIZER} is not on the PATH")
        with tempfile.TemporaryDirectory() as folder:
            for number, (dag, built) in enumerate(islice(_buildable(gpu, tool), programs)):
                store(Path(folder), number, dag, built)
            command = [
                sanitizer, "--tool", tool, "--error-exitcode", str(_FOUND),
                sys.executable, "-m", gpu.launcher, folder,
            ]  # fmt: skip
            done = subprocess.run(command, capture_output=True, text=True)
        said = [line for line in done.stdout.splitlines() if "=====" in line]
        assert done.returncode == 0, " | ".join(said[:6]) or done.stderr[-300:]
        return f"{programs} programs; {said[-1].strip('= ') if said else 'nothing was said'}"

    return check


def _buildable(gpu: SmokeGpu, tool: str) -> Iterator[tuple[ComputeDAG, Built]]:
    """Random programs of all kinds in turn, of dense tensors, that pack no constants.

    Races need shared memory, so that only such programs are watched for them.
    """
    for number in count():
        taken = 0
        for program in drawn_programs(np.random.default_rng([1, number]), number, gpu):
            try:
                built = gpu.build(program.state)
            except (CodegenError, ScheduleError):
                continue
            sizes = program.sizes[0]
            has_shared = "shared" in str(program.state.history)
            if (
                built.bind is None
                and not program.dag.strides
                and (tool != "racecheck" or has_shared)
            ):
                yield dag_at(program.dag, sizes), built.at(sizes)
                taken += 1
            if taken == 4:
                break


CHECKS: dict[str, Callable[[SmokeGpu], str]] = {
    **{f"planted.{fault}": planted(fault, kind) for fault, kind in PLANTED.items()},
    "watched.memcheck": watched("memcheck", _WATCHED),
    "watched.racecheck": watched("racecheck", _WATCHED // 4),
    **{f"network.{name}": _network(make) for name, make in _NETWORKS.items()},
}
"""The checks by name; each returns a remark, and raises an error if it fails."""


if __name__ == "__main__":
    print(check_one(sys.argv[1], checks=CHECKS).model_dump_json())
