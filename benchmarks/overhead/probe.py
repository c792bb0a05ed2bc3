"""One measurement in a separate process: ``python -m benchmarks.overhead.probe WHAT JSON``.

The process prints its figures as one JSON object.  Before measuring an engine, it imports only what
that engine needs.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from statistics import median
from time import perf_counter
from timeit import Timer
from typing import Any

import numpy as np

from ansorpy.measure.probe.others import family

__all__ = ["PROBES", "main"]

Figures = dict[str, float]
Run = Callable[[], object]
Feeds = dict[str, np.ndarray[Any, Any]]

_REPEATS = 9
_SAMPLE_S = 0.02
_LATER_CALLS = 5
_LOOK_S = 0.1
_TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}


class _Ours:
    """One of our libraries, called as by a user."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        import ansorpy as ap

        self._threads: int = given["threads"]
        self._model = ap.load(given["library"])
        shapes = {p.name: (p.shape, p.dtype) for p in self._model.get_inputs()}
        self.feeds: Feeds = {name: _touched(s, d) for name, (s, d) in shapes.items()}

    def run(self) -> object:
        return self._model.run(None, self.feeds, threads=self._threads)

    def into_arrays(self) -> Run:
        """Return a run that writes to the caller's arrays."""
        outputs = self._model.run(None, self.feeds, threads=self._threads)
        return lambda: self._model.run(None, self.feeds, outputs, threads=self._threads)


class _Onnxruntime:
    """A CPU session with the same number of threads, called as by a user."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = given["threads"]
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            given["onnx"], options, providers=["CPUExecutionProvider"]
        )
        self.feeds: Feeds = {
            i.name: _touched(tuple(i.shape), _TYPES[i.type]) for i in self._session.get_inputs()
        }

    def run(self) -> object:
        return self._session.run(None, self.feeds)

    def into_arrays(self) -> Run:
        """Return a run with inputs and outputs bound once."""
        binding = self._session.io_binding()
        for name, array in self.feeds.items():
            binding.bind_cpu_input(name, array)
        for output in self._session.get_outputs():
            binding.bind_output(output.name)
        return lambda: self._session.run_with_iobinding(binding)


_ENGINES: dict[str, Callable[[Mapping[str, Any]], _Ours | _Onnxruntime]] = {
    "ansorpy": _Ours, "onnxruntime": _Onnxruntime,
}  # fmt: skip


def _touched(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    return np.full(shape, 0.5, dtype)


def calls(given: Mapping[str, Any]) -> Figures:
    """Microseconds per call, arithmetic included."""
    engine = _ENGINES[given["engine"]](given)
    figures = {"run_us": _microseconds(engine.run)}
    figures["into_arrays_us"] = _microseconds(engine.into_arrays())
    if given["engine"] == "ansorpy":
        figures["c_us"] = _from_c(given)
    return figures


def first(given: Mapping[str, Any]) -> Figures:
    """Milliseconds of loading, of the first call and of a later one; resident MiB after each.

    Inputs are allocated and touched before memory is read after loading.
    """
    start = perf_counter()
    engine = _ENGINES[given["engine"]](given)
    loaded_s = perf_counter() - start
    before = _resident()
    seconds = []
    for _ in range(1 + _LATER_CALLS):
        start = perf_counter()
        engine.run()
        seconds.append(perf_counter() - start)
        if len(seconds) == 1:
            after = _resident()
    return {
        "load_ms": loaded_s * 1e3,
        "first_ms": seconds[0] * 1e3,
        "later_ms": median(seconds[1:]) * 1e3,
        "loaded_mib": before,
        "run_mib": after,
        "rise_mib": after - before,
    }


def compiled(given: Mapping[str, Any]) -> Figures:
    """Seconds to compile the file to a library without tuning; peak MiB of all processes."""
    import ansorpy as ap

    start = perf_counter()
    with _PeakOfAll() as peak:
        records = Path(given["library"]).with_suffix(".db")
        records.unlink(missing_ok=True)  # with the results of an earlier run
        model = ap.compile(
            given["onnx"], effort=given["effort"], threads=given["threads"], db=records
        )
        model.export(given["library"])
    return {
        "compile_s": perf_counter() - start,
        "own_peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "peak_mib": peak.mib,
        "constants_mib": model.constant_bytes / 2**20,
        "given_mib": _initializer_bytes(Path(given["onnx"])) / 2**20,
    }


class _PeakOfAll:
    """Peak resident memory of this process and its workers, sampled periodically."""

    def __init__(self) -> None:
        self.mib = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> _PeakOfAll:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            self.mib = max(self.mib, sum(map(_resident, family(os.getpid()))))
            if self._done.wait(_LOOK_S):
                return


def _initializer_bytes(path: Path) -> int:
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(path).graph
    return sum(numpy_helper.to_array(tensor).nbytes for tensor in graph.initializer)


def _microseconds(run: Run) -> float:
    run()
    timer = Timer(run)
    number, seconds = 1, 0.0
    while seconds < _SAMPLE_S:
        number *= 2
        seconds = timer.timeit(number)
    return median(timer.repeat(_REPEATS, number)) / number * 1e6


_LOOP = """
define i32 @again(ptr %run, ptr %context, ptr %inputs, ptr %outputs, i32 %threads, i64 %calls) {
entry:
  br label %loop
loop:
  %n = phi i64 [ 0, %entry ], [ %next, %loop ]
  %bad = phi i32 [ 0, %entry ], [ %any, %loop ]
  %status = call i32 %run(ptr %context, ptr %inputs, ptr %outputs, i32 %threads)
  %any = or i32 %bad, %status
  %next = add i64 %n, 1
  %more = icmp ult i64 %next, %calls
  br i1 %more, label %loop, label %done
done:
  ret i32 %any
}
"""


def _from_c(given: Mapping[str, Any]) -> float:
    """Microseconds per call of the library's C function, from a loop in machine code."""
    import ansorpy as ap
    from ansorpy.codegen.llvm.objects.build import compile_ir
    from ansorpy.codegen.llvm.objects.jit import load
    from ansorpy.runtime.ports import c_tensors
    from ansorpy.target import Target

    path, threads = Path(given["library"]), given["threads"]
    model = ap.load(path)
    library = ctypes.CDLL(str(path.absolute()))
    ports = (model.get_inputs(), model.get_outputs())
    arrays = [[_touched(port.shape, port.dtype) for port in side] for side in ports]
    tables = [c_tensors(side) for side in ports]
    for table, side in zip(tables, arrays, strict=True):
        for number, array in enumerate(side):
            table[number].data = array.ctypes.data
    size = ctypes.c_size_t()
    if getattr(library, f"{model.name}_plan")(*tables, threads, ctypes.byref(size)):
        raise RuntimeError("the library returned an error")
    context = ctypes.create_string_buffer(size.value)
    run = ctypes.cast(getattr(library, f"{model.name}_run"), ctypes.c_void_p)
    loop = load([compile_ir(_LOOP, Target.host())], symbols=["again"])
    again = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4, ctypes.c_int, ctypes.c_int64)(
        loop.address("again")
    )
    number = 4096

    def burst() -> None:
        if again(run, ctypes.addressof(context), tables[0], tables[1], threads, number):
            raise RuntimeError("the library returned an error")

    return _microseconds(burst) / number


def _resident(process: int | str = "self") -> float:
    """Resident MiB of *process*; 0 if it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    return 0.0


PROBES: dict[str, Callable[[Mapping[str, Any]], Figures]] = {
    "calls": calls, "first": first, "compiled": compiled,
}  # fmt: skip


def main() -> None:
    """Measure what the command line requests."""
    what, given = sys.argv[1:]
    print(json.dumps(PROBES[what](json.loads(given))))


if __name__ == "__main__":
    main()
