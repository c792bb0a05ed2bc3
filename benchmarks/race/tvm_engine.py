"""TVM's MetaSchedule as an engine: tunes a case or a network, and runs what it found.

Both happen in processes of their own, because TVM reads its number of threads once, when it loads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import rmtree
from time import monotonic
from types import ModuleType
from typing import Any

import numpy as np
import onnx

from ansorpy.arrays import Array
from ansorpy.errors import MissingDependency, VerificationFailed
from ansorpy.evaluation.engines.ort import OnnxRuntime
from ansorpy.evaluation.inputs import random_value
from ansorpy.evaluation.verify import compare_outputs
from ansorpy.target import Target
from benchmarks.ops.reference import Reference
from benchmarks.ops.suite import case_named
from benchmarks.race.te import relax_module, te_tensors
from benchmarks.study.outcomes import Value
from benchmarks.study.tuned import Subject

__all__ = ["TvmModel", "TvmOperator", "tune_with_tvm"]

_TIMEOUT_S = 120.0
"""For building and for running a candidate; a loaded machine takes long to start TVM's workers."""
_TOLERANCE = 1e-3
"""Of the largest output: tells a wrong program from one that adds in another order."""
_SEED = 1
_TASKS = 200
"""More tasks than a network has: the trials of each are limited, not those of all."""


def tune_with_tvm(subject: Subject, trials: int, library: Path) -> Value:
    """Tune with MetaSchedule for *trials* programs of each task; write the result to *library*.

    An operator is one function, as for our search.  If TVM's own rules fail on that, it is a
    network of its stages, as an importer of TVM makes it; ``functions`` says which.

    Raises:
        MissingDependency: TVM is not installed.
        VerificationFailed: No program ran.
    """
    work, functions = library.with_suffix(".work"), "of TVM's fusion"
    rmtree(work, ignore_errors=True)  # whose records MetaSchedule would go on from
    library.unlink(missing_ok=True)
    tvm = _tvm(subject.threads)
    library.parent.mkdir(parents=True, exist_ok=True)
    began = monotonic()
    if not subject.is_operator:
        built = _network(tvm, _imported(tvm, subject.path), subject, trials, work)
    else:
        try:
            built, functions = _operator(tvm, subject, trials, work), "one"
        except tvm.s_tir.schedule.ScheduleError:
            stages = relax_module(case_named(subject.name).dag, tvm)
            built = _network(tvm, stages, subject, trials, work)
    seconds = monotonic() - began
    built.export_library(str(library))
    return {
        "seconds": seconds, "version": str(tvm.__version__), "library": str(library),
        "functions": functions,
    }  # fmt: skip


class TvmOperator:
    """A library of one case, on prepared arrays."""

    precision = "float32"

    def __init__(self, case: str, *, library: str, threads: int, reference: str) -> None:
        tvm = _tvm(threads)
        subject = case_named(case)
        self.version = str(tvm.__version__)
        values = subject.values(0)
        [out] = subject.dag.outputs
        arrays = [values[op.name] for op in subject.dag.args]
        arrays.append(np.zeros(out.shape, out.dtype.numpy))
        self._arrays = [tvm.runtime.tensor(array) for array in arrays]
        module = tvm.runtime.load_module(library)
        self._call = _into(module) if module.implements_function("main") else _made_by(tvm, module)
        self.run()
        Reference.load(Path(reference)).check("MetaSchedule", subject, self.outputs()["out"])

    def run(self) -> None:
        self._out = self._call(self._arrays)

    def outputs(self) -> dict[str, Array]:
        return {"out": self._out.numpy()}


def _into(module: Any) -> Callable[[Sequence[Any]], Any]:
    """A call of one function, which writes its last argument."""
    main = module["main"]

    def call(arrays: Sequence[Any]) -> Any:
        main(*arrays)
        return arrays[-1]

    return call


def _made_by(tvm: Any, module: Any) -> Callable[[Sequence[Any]], Any]:
    """A call of a network of stages, which makes its result."""
    main = tvm.relax.VirtualMachine(module, tvm.cpu())["main"]
    return lambda arrays: main(*arrays[:-1])


class TvmModel:
    """A library of a network, on its virtual machine.

    Raises:
        VerificationFailed: Its outputs are not those of onnxruntime.
    """

    precision = "float32"

    def __init__(self, path: str, *, library: str, threads: int) -> None:
        tvm = _tvm(threads)
        self.version = str(tvm.__version__)
        machine = tvm.relax.VirtualMachine(tvm.runtime.load_module(library), tvm.cpu())
        graph = onnx.load(path).graph
        held = {tensor.name for tensor in graph.initializer}
        given = [(value, _random(value)) for value in graph.input if value.name not in held]
        self._feeds = [tvm.runtime.tensor(feed) for _, feed in given]
        self._main = machine["main"]
        self.run()
        peer = OnnxRuntime(path, {value.name: feed for value, feed in given}, threads)
        peer.run()
        wanted = {str(number): value for number, value in enumerate(peer.outputs().values())}
        compare_outputs(
            "MetaSchedule", "onnxruntime", self.outputs(), wanted, {}, _TOLERANCE
        ).demand()

    def run(self) -> None:
        self._found = self._main(*self._feeds)

    def outputs(self) -> dict[str, Array]:
        found = self._found
        arrays = [found] if hasattr(found, "numpy") else list(found)
        return {str(number): array.numpy() for number, array in enumerate(arrays)}


def _tvm(threads: int) -> ModuleType:
    """TVM, whose programs run on *threads* threads.

    By default it halves the cores, taking them for hyper-threads.
    """
    os.environ["TVM_NUM_THREADS"] = str(threads)
    try:
        import tvm
        import tvm.relax
        import tvm.relax.frontend.onnx
        import tvm.s_tir.meta_schedule
        import tvm.te
    except ImportError:
        raise MissingDependency(
            "MetaSchedule does not race, since TVM is not installed",
            hint="pip install -r requirements/tvm.txt",
        ) from None
    return tvm  # type: ignore[no-any-return]


def _target(tvm: Any, threads: int) -> Any:
    return tvm.target.Target({"kind": "llvm", "mcpu": Target.host().cpu, "num-cores": threads})


def _measuring(tvm: Any, threads: int) -> dict[str, Any]:
    """How MetaSchedule builds and times candidates."""
    schedule = tvm.s_tir.meta_schedule
    return {
        "builder": schedule.builder.LocalBuilder(max_workers=threads, timeout_sec=_TIMEOUT_S),
        "runner": schedule.runner.LocalRunner(timeout_sec=_TIMEOUT_S),
    }


def _operator(tvm: Any, subject: Subject, trials: int, work: Path) -> Any:
    """The fastest program of a case, built."""
    schedule = tvm.s_tir.meta_schedule
    case, target = case_named(subject.name), _target(tvm, subject.threads)
    function = tvm.te.create_prim_func(te_tensors(case.dag, tvm))
    module = tvm.IRModule({"main": function})
    database = schedule.tune_tir(
        module, target, str(work), trials, num_tuning_cores=subject.threads, seed=_SEED,
        **_measuring(tvm, subject.threads),
    )  # fmt: skip
    found = schedule.tir_integration.compile_tir(database, module, target)
    if found is None:
        raise VerificationFailed(f"none of {trials} programs that MetaSchedule made ran")
    return tvm.compile(found.mod, target=target)


def _network(tvm: Any, module: Any, subject: Subject, trials: int, work: Path) -> Any:
    """A module of Relax, each of whose tasks is tuned, built.

    The steps are those of TVM's static_shape_tuning_pipeline, which does not say how long a build
    may take: within its 30 s, few candidates are built on two cores.
    """
    schedule = tvm.s_tir.meta_schedule.relax_integration
    passes, target = tvm.relax.transform, _target(tvm, subject.threads)
    with target:
        module = passes.DecomposeOpsForInference()(module)
        module = passes.CanonicalizeBindings()(module)
        module = tvm.relax.pipeline.zero_pipeline()(module)  # fuses
        schedule.tune_relax(
            module, {}, target, str(work), _TASKS * trials, max_trials_per_task=trials,
            seed=_SEED, **_measuring(tvm, subject.threads),
        )  # fmt: skip
        return tvm.compile(passes.MetaScheduleApplyDatabase(str(work))(module), target=target)


def _imported(tvm: Any, path: Path) -> Any:
    """A network in the layout of its file.

    TVM's pass that converts layouts (ConvertLayout, 0.27) fails on the networks of the suite.
    """
    return tvm.relax.frontend.onnx.from_onnx(onnx.load(path))


def _random(value: onnx.ValueInfoProto) -> Array:
    kind = value.type.tensor_type
    shape = tuple(dim.dim_value for dim in kind.shape.dim)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    return random_value(shape, dtype, 0, value.name)
