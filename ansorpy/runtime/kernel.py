"""A tuned operator as a function on arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from ansorpy.arrays import Array
from ansorpy.errors import UsageError
from ansorpy.ir.loops import Role
from ansorpy.notebook import card
from ansorpy.quantities import latency_text, path_of
from ansorpy.runtime.backends import runtime_of
from ansorpy.runtime.compiled_task import CompiledTask
from ansorpy.runtime.executable import Uncopied
from ansorpy.runtime.execution_plan import ExecutionPlan
from ansorpy.runtime.export import export
from ansorpy.runtime.in_memory import InMemory, load_plan
from ansorpy.runtime.planner import constant_ports, kernel_ports, plan_kernel
from ansorpy.runtime.ports import Port, host_array, one_of, own_result, ports_grid
from ansorpy.runtime.schedules import states_of
from ansorpy.runtime.sizes import SizedPorts
from ansorpy.target import Target

__all__ = ["Kernel"]


class Kernel(Uncopied):
    """One compiled operator: call it with its inputs, in order.

    If the definition has dimensions, the shapes of the inputs state their sizes.

    Constants are bound first, by name and once: ``kernel.bind(W=w)``.  A kernel may be called
    from several Python threads at once.

    Args:
        task: The code and its description.
        threads: Default number of threads of a call.
    """

    def __init__(
        self, task: CompiledTask, *, target: Target, threads: int, name: str = "kernel"
    ) -> None:
        self.name = name
        self.target = target
        self.threads = threads
        self._task = task
        self._constants: dict[str, Array] = {}
        self._loaded: InMemory | None = None
        self._loading = Lock()
        self._check = runtime_of(target).operands.check
        self.constants = constant_ports(task.built)
        self.inputs = kernel_ports(task.built, Role.INPUT)
        self.outputs = kernel_ports(task.built, Role.OUTPUT)
        self._sized = SizedPorts.of(self.inputs, self.outputs)

    @property
    def program(self) -> str:
        """The selected loop nest, as text."""
        return self._task.program

    @property
    def median_ms(self) -> float | None:
        """Median time of one run on the tuning machine.

        ``None`` if it was never timed, or has dimensions, whose sizes decide the time.
        """
        return None if self._task.median_s is None else self._task.median_s * 1e3

    def bind(self, /, **constants: Any) -> Kernel:
        """Bind the constants and pack them for the code; returns the kernel itself.

        The arrays are copied into the kernel.  Binding again replaces all of them; calls already
        running finish with the earlier ones.

        Raises:
            UsageError: A constant is missing, unknown, or of another shape or type.
        """
        self._plan(constants)
        copies = {
            port.name: np.array(host_array("constant", port, constants[port.name]))
            for port in self.constants
        }
        if self.target.runs_on_host():
            self._loaded = load_plan(self._plan(copies), "kernel")
        else:
            self._constants = copies
        return self

    def __call__(
        self,
        *arrays: Any,
        out: Any = None,
        threads: int | None = None,
    ) -> Any:
        """Run once; returns the output, or a tuple when there are several.

        Args:
            arrays: The inputs, in the definition's order; C-contiguous arrays of numpy, or others
                that support DLPack, such as those of torch and jax.  On a GPU also arrays in GPU
                memory that have ``__cuda_array_interface__`` or support DLPack.
            out: Array (or one for each output) to write to, instead of allocating numpy arrays.

        Raises:
            UsageError: Wrong number, shape, type or layout of arrays, a size out of range, or
                unbound constants.
        """
        inputs, outputs = self._check_inputs(arrays)
        given = [None] * len(outputs) if out is None else self._given(out, outputs)
        loaded = self._loaded or self._load()
        used = self.threads if threads is None else threads
        results = loaded.executable.run(inputs, given, used)
        if out is not None:
            results = [*map(own_result, _listed(out), given, results)]
        return results[0] if len(results) == 1 else tuple(results)

    def prepare(self, *arrays: Any, out: Any, threads: int | None = None) -> Callable[[], None]:
        """Return a function that computes *out* from *arrays* each time it is called.

        The arrays are checked once, here, so a call adds about a microsecond to the compiled code.
        The function has memory of its own and must not be called from two threads at once.

        Raises:
            UsageError: As for a call of the kernel.
        """
        inputs, ports = self._check_inputs(arrays)
        outputs = self._given(out, ports)
        loaded = self._loaded or self._load()
        used = self.threads if threads is None else threads
        return loaded.executable.prepare(inputs, outputs, used)

    def export(self, path: str | Path, pack: str | None = None) -> Path:
        """Write the library *path*, or another form by its suffix; see :func:`export`."""
        if self.target.runs_on_host():
            plan = (self._loaded or self._load()).plan
        else:
            plan = self._plan(self._constants)
        return export(plan, path_of(path, "a library"), pack)

    def _check_inputs(self, arrays: Sequence[Any]) -> tuple[list[Any], Sequence[Port]]:
        """*arrays* as the code reads them, and the outputs, with shapes as they state them."""
        if len(arrays) != len(self.inputs):
            raise UsageError(
                f"{self.name} takes {one_of(self.inputs)}, in this order; got {len(arrays)} arrays"
            )
        ports = self.inputs, self.outputs
        if self._sized is not None:
            ports = self._sized.at(arrays)
        checked = [self._check("input", *pair) for pair in zip(ports[0], arrays, strict=True)]
        return checked, ports[1]

    def _given(self, out: Any, outputs: Sequence[Port]) -> list[Any]:
        given = _listed(out)
        if len(given) != len(self.outputs):
            raise UsageError(
                f"{self.name} has {len(self.outputs)} outputs ({one_of(self.outputs)}), "
                f"but out= has {len(given)} arrays"
            )
        pairs = zip(outputs, given, strict=True)
        return [self._check("output", *pair, written=True) for pair in pairs]

    def _load(self) -> InMemory:
        with self._loading:
            if self._loaded is None:
                self._loaded = load_plan(self._plan(self._constants), "kernel")
            return self._loaded

    def _plan(self, constants: Mapping[str, Any]) -> ExecutionPlan:
        return plan_kernel(self._task, constants, target=self.target, threads=self.threads)

    def __repr__(self) -> str:
        ends = " -> ".join(one_of(ports) for ports in (self.inputs, self.outputs))
        sizes = ", ".join(map(str, self._task.dims))
        return f"<Kernel {self.name}: {ends}, {sizes or self._time}>"

    def _repr_html_(self) -> str:
        facts = {
            "time": "" if self._task.dims else self._time,
            "sizes": ", ".join(map(str, self._task.dims)),
            "threads": str(self.threads),
            "target": self.target.name,
            "constants": ", ".join(port.name for port in self.constants),
        }
        folded = {"Loops that run": self.program}
        if self._task.schedule:
            histories = [str(state.history) for state in states_of(self._task.schedule)]
            folded["Schedule"] = "\n\n".join(filter(None, histories)) or "as written"
        tables = [ports_grid(self.inputs, self.outputs)]
        return card("Kernel", self.name, facts, folded, tables)

    @property
    def _time(self) -> str:
        seconds = self._task.median_s
        return "never timed" if seconds is None else latency_text(seconds)


def _listed(out: Any) -> list[Any]:
    """The arrays of ``out=``, which is one of them or has several."""
    return list(out) if isinstance(out, list | tuple) else [out]
