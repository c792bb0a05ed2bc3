"""A compiled network, in memory or from a library, used like an onnxruntime session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ansorpy.codegen.llvm.memory import aligned_empty
from ansorpy.config import NUM_THREADS, available_cores
from ansorpy.errors import UsageError
from ansorpy.graph.network import Network
from ansorpy.runtime.executable import Executable
from ansorpy.runtime.export import export
from ansorpy.runtime.footprint import Footprint
from ansorpy.runtime.gpu.executable import GpuExecutable
from ansorpy.runtime.gpu.operands import accept_operand, check_operand
from ansorpy.runtime.in_memory import InMemory, load_plan
from ansorpy.runtime.plan import CompiledTask, Plan, plan_network
from ansorpy.runtime.ports import Array, Port, accepted, check_array, one_of
from ansorpy.runtime.shared import open_library
from ansorpy.target import Target

__all__ = ["Model"]


@dataclass(frozen=True)
class _Parts:
    """What a model runs on; ``executable`` is ``None`` if it was compiled for another machine."""

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    threads: int
    executable: Executable | GpuExecutable | None
    plan: Plan | None
    pool: np.ndarray[Any, np.dtype[np.uint8]] | None
    constant_bytes: int
    is_on_gpu: bool = False


class Model:
    """A compiled network; made by :meth:`of`, :meth:`load` or :func:`ansorpy.compile`.

    It may be called from several Python threads at once: each run has its own context.  One context
    is created with the model, so that the first run need not allocate memory.
    """

    def __init__(self, parts: _Parts) -> None:
        self._parts = parts
        self._inputs = {port.name: port for port in parts.inputs}
        self._outputs = {port.name: port for port in parts.outputs}
        self._none_given = (None,) * len(parts.outputs)
        self._accept = accept_operand if parts.is_on_gpu else accepted
        self._check = check_operand if parts.is_on_gpu else check_array
        if parts.executable is not None:
            parts.executable.reserve(parts.threads)

    @staticmethod
    def of(
        network: Network,
        tasks: Mapping[str, CompiledTask],
        *,
        target: Target,
        threads: int,
        name: str = "model",
        median_s: float | None = None,
    ) -> Model:
        """Make the model of *network*; *tasks* has the code of each workload by its key.

        Constants are bound here: packed once into the order the code reads.  If this machine cannot
        run *target*, the model can only be exported.
        """
        plan = plan_network(network, tasks, target=target, threads=threads, median_s=median_s)
        return Model.of_plan(plan, name)

    @staticmethod
    def of_plan(plan: Plan, name: str = "model") -> Model:
        """Make the model of a network's *plan*, as :meth:`of` does."""
        if not plan.target.runs_on_host():
            parts = _Parts(
                name, plan.inputs, plan.outputs, plan.threads, None, plan, None, plan.pool_bytes
            )
            return Model(parts)
        loaded = load_plan(plan, "model")
        return Model(
            _Parts(
                name, plan.inputs, plan.outputs, plan.threads, loaded.executable, loaded.plan,
                loaded.pool, plan.pool_bytes, plan.target.kind == "cuda",
            )
        )  # fmt: skip

    @staticmethod
    def load(path: str | Path) -> Model:
        """Load the network in the library *path*.

        It runs with the number of threads it was tuned for, or with as many as this process may use
        cores if those are fewer; ``ANSORPY_NUM_THREADS`` overrides both.

        Raises:
            ForeignFile: Not an ansorpy library, or one with another version of the interface.
            MissingDependency: It was built for a CPU that this machine does not have.
        """
        metadata, executable = open_library(Path(path))
        threads = NUM_THREADS.get() or min(metadata.threads, available_cores())
        return Model(
            _Parts(
                metadata.name, metadata.input_ports, metadata.output_ports, threads, executable,
                None, None, metadata.constant_bytes,
            )
        )  # fmt: skip

    @property
    def name(self) -> str:
        return self._parts.name

    @property
    def threads(self) -> int:
        """Default number of threads of a run."""
        return self._parts.threads

    @property
    def constant_bytes(self) -> int:
        """Bytes of the constants as the code reads them: packed, padded, transformed."""
        return self._parts.constant_bytes

    @property
    def footprint(self) -> Footprint | None:
        """The memory that a run needs; None for a loaded library, which does not record it."""
        plan = self._parts.plan
        return None if plan is None else plan.footprint

    def get_inputs(self) -> list[Port]:
        """The inputs: name, shape, dtype and onnxruntime type name of each."""
        return list(self._parts.inputs)

    def get_outputs(self) -> list[Port]:
        """The outputs, likewise."""
        return list(self._parts.outputs)

    def run(
        self,
        names: Sequence[str] | None,
        feeds: Mapping[str, Any],
        outputs: Sequence[Any] | None = None,
        *,
        threads: int | None = None,
    ) -> list[Any]:
        """Compute the outputs *names* (``None``: all) from *feeds*; returns them in that order.

        Args:
            feeds: Every input by name.  Non-contiguous arrays are copied.  On a GPU also
                arrays in GPU memory that have ``__cuda_array_interface__`` or support DLPack.
            outputs: Arrays to write to, one for each name, returned instead of new numpy arrays.
            threads: Threads of this run.

        Raises:
            UsageError: A wrong name, shape or type; the message names what is expected.
        """
        executable = self._executable()
        wanted = self._wanted(names)
        arrays = self._fed(feeds)
        given = self._given(wanted, outputs)
        used = self._parts.threads if threads is None else threads
        results = executable.run(arrays, given, used)
        if names is None:
            return results
        by_name = dict(zip(self._outputs, results, strict=True))
        return [by_name[port.name] for port in wanted]

    def prepare(
        self, feeds: Mapping[str, Any], outputs: Sequence[Any], *, threads: int | None = None
    ) -> Callable[[], None]:
        """Return a function that computes all *outputs* from *feeds* each time it is called.

        The arrays are checked once, here, and read in place: what they hold at each call counts.
        On a CPU the function has memory of its own and must not be called from two threads at once.
        On a GPU it has ``seconds(n)``, the GPU time of n runs.

        Raises:
            UsageError: As :meth:`run`, or an input is not contiguous.
        """
        arrays = self._in_order(feeds)
        for port, array in zip(self._parts.inputs, arrays, strict=True):
            self._check("input", port, array)
        given = self._given(self._parts.outputs, outputs)
        used = self._parts.threads if threads is None else threads
        return self._executable().prepare(arrays, given, used)

    def profile(
        self, feeds: Mapping[str, Array], *, runs: int = 50, threads: int | None = None
    ) -> list[tuple[str, float]]:
        """Return the name and median seconds of each call, in order, measured within whole runs.

        Args:
            feeds: Every input by name.
            runs: Timed runs; one untimed run precedes them.

        Raises:
            UsageError: This model was loaded from a library, or is for another machine; or *runs*
                is below 1.
        """
        if runs < 1:
            raise UsageError(f"runs must be at least 1, got {runs}")
        parts = self._parts
        if parts.plan is None or parts.pool is None or parts.executable is None:
            raise UsageError(
                f"{self.name} was loaded from a library or is for another machine: its calls "
                "cannot be timed one by one",
                hint="give the ONNX file and its records instead",
            )
        timed = InMemory(parts.executable, parts.plan, parts.pool).timed()
        results = [aligned_empty(port.shape, port.dtype) for port in parts.outputs]
        run = timed.executable.prepare(
            self._fed(feeds), results, self.threads if threads is None else threads
        )
        run()
        seconds = np.empty((runs, len(parts.plan.steps)))
        for row in seconds:
            run()
            row[:] = np.diff(timed.stamps_ns) * 1e-9
        medians = np.median(seconds, axis=0).tolist()
        return [(step.name, time) for step, time in zip(parts.plan.steps, medians, strict=True)]

    def export(self, path: str | Path) -> Path:
        """Write the library *path*, ``<stem>.h`` and ``<stem>_example.c``; returns *path*.

        Raises:
            MissingDependency: There is no linker.
            UsageError: This model was itself loaded from a library.
        """
        if self._parts.plan is None:
            raise UsageError(
                f"{self.name} was loaded from a library", hint="copy that file and its header"
            )
        return export(self._parts.plan, Path(path), pool=self._parts.pool)

    def _executable(self) -> Executable | GpuExecutable:
        if self._parts.executable is None:
            raise UsageError(
                f"{self.name} is compiled for another machine", hint="export it and run it there"
            )
        return self._parts.executable

    def _wanted(self, names: Sequence[str] | None) -> Sequence[Port]:
        if names is None:
            return self._parts.outputs
        unknown = [name for name in names if name not in self._outputs]
        if unknown:
            raise UsageError(
                f"{self.name} has no output {unknown[0]!r}; "
                f"its outputs are {one_of(self._parts.outputs)}"
            )
        if len(set(names)) != len(names):
            raise UsageError("an output is asked for twice")
        return [self._outputs[name] for name in names]

    def _fed(self, feeds: Mapping[str, Any]) -> list[Any]:
        """The arrays of a single run, copied where the code cannot read them in place."""
        arrays = self._in_order(feeds)
        return [self._accept(port, a) for port, a in zip(self._parts.inputs, arrays, strict=True)]

    def _in_order(self, feeds: Mapping[str, Any]) -> list[Any]:
        names = self._inputs
        if len(feeds) != len(names) or any(name not in feeds for name in names):
            raise self._misnamed(feeds)
        return [feeds[name] for name in names]

    def _misnamed(self, feeds: Mapping[str, Any]) -> UsageError:
        unknown = [name for name in feeds if name not in self._inputs]
        missing = [name for name in self._inputs if name not in feeds]
        problem = (
            f"has no input {unknown[0]!r}" if unknown else f"was not given input {missing[0]!r}"
        )
        return UsageError(f"{self.name} {problem}; its inputs are {one_of(self._parts.inputs)}")

    def _given(self, wanted: Sequence[Port], outputs: Sequence[Any] | None) -> Sequence[Any]:
        """The caller's array for each of the model's outputs; ``None`` where none was passed."""
        if outputs is None:
            return self._none_given
        if len(outputs) != len(wanted):
            raise UsageError(
                f"{len(wanted)} outputs are asked for ({one_of(wanted)}), outputs= gives "
                f"{len(outputs)}"
            )
        for port, array in zip(wanted, outputs, strict=True):
            self._check("output", port, array, written=True)
        if wanted is self._parts.outputs:
            return outputs
        by_name = {port.name: array for port, array in zip(wanted, outputs, strict=True)}
        return [by_name.get(name) for name in self._outputs]

    def __repr__(self) -> str:
        ends = " -> ".join(one_of(ports) for ports in (self._parts.inputs, self._parts.outputs))
        return f"<Model {self.name}: {ends}>"
