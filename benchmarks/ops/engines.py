"""The engines that ``ansorpy.evaluation.bench`` starts, one per process, each for one case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Protocol, TypeVar

import onnx

import ansorpy as ap
from ansorpy import __version__
from ansorpy.arrays import Array
from ansorpy.codegen.llvm.objects.memory import aligned_empty
from ansorpy.evaluation.engines.protocol import Engine, open_engine
from benchmarks.common.cells import OURS
from benchmarks.ops.reference import Reference
from benchmarks.ops.suite import case_named

__all__ = ["Prepared", "open_onnx", "open_ours", "open_torch"]

TRIAL_CALLS, TRIAL_S = 5, 0.2


class _Runs(Protocol):
    def run(self) -> None: ...


E = TypeVar("E", bound=_Runs)


class Prepared:
    """A prepared call; :attr:`run` makes only the call."""

    precision = "float32"

    def __init__(self, version: str, run: Callable[[], Any], output: Callable[[], Array]) -> None:
        self.version = version
        self.run: Callable[[], Any] = run
        self._output = output

    def outputs(self) -> dict[str, Array]:
        """The single output, under the name ``out``."""
        return {"out": self._output()}


def open_ours(case: str, *, db: str, threads: int, seed: int, reference: str) -> Prepared:
    """Open the best recorded program of the case, on prepared arrays."""
    subject = case_named(case)
    kernel = ap.tune(subject.tensors(), effort="none", threads=threads, db=db)
    values = subject.values(seed)
    kernel.bind(**{op.name: values[op.name] for op in subject.dag.args if op.constant})
    inputs = [_placed(values[op.name]) for op in subject.dag.args if not op.constant]
    out = aligned_empty(subject.dag.outputs[0].shape, subject.dag.outputs[0].dtype.numpy)
    run = kernel.prepare(*inputs, out=out)
    run()
    Reference.load(Path(reference)).check(OURS, subject, out)
    return Prepared(__version__, run, lambda: out)


def open_onnx(engine: str, case: str, *, threads: int, seed: int, reference: str) -> Engine:
    """Open a peer that reads ONNX, on the fastest of the case's models."""
    subject = case_named(case)
    values = subject.peer_values(seed)
    feeds = {op.name: _placed(values[op.name]) for op in subject.dag.args if not op.constant}
    found: list[Engine] = []
    with TemporaryDirectory(prefix="ops-") as folder:
        for number, model in enumerate(subject.onnx_models(seed)):
            path = Path(folder, f"{number}.onnx")
            onnx.save(model, path)
            found.append(open_engine(engine, str(path), feeds, threads))
    check = Reference.load(Path(reference))
    for one in found:
        one.run()
        check.check(engine, subject, subject.from_peer(one.outputs()["out"]))
    return _fastest(found)


def open_torch(case: str, *, threads: int, seed: int, reference: str) -> Prepared:
    """Open torch in eager inference mode, on the fastest of the case's calls."""
    import torch

    torch.set_num_threads(threads)
    torch.set_num_interop_threads(1)
    torch.inference_mode().__enter__()  # for the lifetime of the process
    subject = case_named(case)
    placed = {name: _placed(array) for name, array in subject.peer_values(seed).items()}
    values = {name: torch.from_numpy(array) for name, array in placed.items()}
    check = Reference.load(Path(reference))
    found = []
    for call in subject.torch_calls(torch, values):
        output = partial(_numpy, call)
        check.check("torch", subject, subject.from_peer(output()))
        found.append(Prepared(str(torch.__version__), call, output))
    return _fastest(found)


def _numpy(call: Callable[[], Any]) -> Array:
    array: Array = call().contiguous().numpy()
    return array


def _placed(array: Array) -> Array:
    """A copy where every engine's arguments lie: on the boundaries of :func:`aligned_empty`."""
    place = aligned_empty(array.shape, array.dtype)
    place[...] = array
    return place


def _fastest(engines: Sequence[E]) -> E:
    return engines[0] if len(engines) == 1 else min(engines, key=_seconds)


def _seconds(engine: _Runs) -> float:
    """Minimum time of a few calls, after the same number of untimed ones."""
    best, start = float("inf"), perf_counter()
    while perf_counter() - start < TRIAL_S:
        for timed in [False] * TRIAL_CALLS + [True] * TRIAL_CALLS:
            before = perf_counter()
            engine.run()
            best = min(best, perf_counter() - before) if timed else best
    return best
