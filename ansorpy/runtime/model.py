"""A network that runs, from a library or just compiled; used like an onnxruntime session.

Loading a library imports this module, so nothing here may import the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ansorpy.config import NUM_THREADS, available_cores
from ansorpy.errors import UsageError
from ansorpy.ir.alias import Alias
from ansorpy.notebook import card
from ansorpy.quantities import bytes_text, path_of
from ansorpy.runtime.executable import Uncopied
from ansorpy.runtime.footprint import Footprint
from ansorpy.runtime.library.shared_library import open_library
from ansorpy.runtime.packed import packed_input, packed_kinds, unpack, with_packing
from ansorpy.runtime.ports import (
    Port,
    accepted,
    array_of,
    check_array,
    one_of,
    own_result,
    ports_grid,
)
from ansorpy.runtime.sharing import Sharing
from ansorpy.runtime.sizes import Ports, SizedPorts

if TYPE_CHECKING:
    from ansorpy.arrays import Array
    from ansorpy.runtime.library.metadata import Metadata
    from ansorpy.trace import Trace

__all__ = ["Model", "Operands", "Runs", "Signature", "load", "usual_threads"]


class Runs(Protocol):
    """Loaded code: on a CPU (:class:`~ansorpy.runtime.executable.Executable`) or on a GPU."""

    def run(
        self, inputs: Sequence[Any], outputs: Sequence[Any | None], threads: int
    ) -> list[Any]: ...

    def reserve(self, threads: int) -> None: ...

    def prepare(
        self, inputs: Sequence[Any], outputs: Sequence[Any], threads: int
    ) -> Callable[[], None]: ...


@dataclass(frozen=True)
class Operands:
    """Which arrays callers may pass.

    Args:
        accept: Returns the array that the code reads for an array given by the caller, copied if
            necessary.
        check: Returns an array of the caller as the code reads or writes it in place, which needs
            no copy; it refuses any other.
    """

    accept: Callable[[Port, Any], Any] = accepted
    check: Callable[..., Any] = check_array


@dataclass(frozen=True)
class Signature:
    """A model's name, inputs and outputs; ``threads`` is the default number of threads of a run.

    ``aliases`` are the outputs that share the memory of an input.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    threads: int
    constant_bytes: int
    aliases: tuple[Alias, ...] = ()


class Model(Uncopied):
    """A network to call; made by :func:`load` or :func:`ansorpy.compile`.

    It may be called from several Python threads at once: each run has its own context.  One context
    is created with the model, so that the first run need not allocate memory; if the network has
    dimensions, contexts grow with the sizes that the shapes of the inputs state.
    """

    def __init__(
        self,
        signature: Signature,
        code: Runs | None,
        operands: Operands | None = None,
        check: Callable[[], None] | None = None,
        library: Path | None = None,
    ) -> None:
        self._signature = signature
        self._code = code
        self._check_code = check
        self._library = library
        self._inputs = {port.name: port for port in signature.inputs}
        self._outputs = {port.name: n for n, port in enumerate(signature.outputs)}
        self._sized = SizedPorts.of(signature.inputs, signature.outputs)
        self._sharing = Sharing(signature.aliases, signature.inputs, signature.outputs)
        self._none_given = (None,) * len(signature.outputs)
        allowed = operands or Operands()
        self._accept, self._check = allowed.accept, allowed.check
        self._packed = packed_kinds(signature.inputs), packed_kinds(signature.outputs)
        if code is not None:
            code.reserve(signature.threads)

    @property
    def name(self) -> str:
        """The network's name."""
        return self._signature.name

    @property
    def library(self) -> Path | None:
        """The library that it was loaded from; None if it was compiled in this process."""
        return self._library

    @property
    def threads(self) -> int:
        """Default number of threads of a run."""
        return self._signature.threads

    @property
    def constant_bytes(self) -> int:
        """Bytes of the constants as the code reads them: packed, padded, transformed."""
        return self._signature.constant_bytes

    @property
    def footprint(self) -> Footprint | None:
        """The memory that a run needs; None for a loaded library, which does not record it."""
        return None

    def get_inputs(self) -> list[Port]:
        """The inputs: name, shape, dtype and onnxruntime type name of each.

        Extents of dimensions are expressions, such as ``n`` and ``2*n + 1``.
        """
        return list(self._signature.inputs)

    def get_outputs(self) -> list[Port]:
        """The outputs: name, shape, dtype and onnxruntime type name of each."""
        return list(self._signature.outputs)

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
            feeds: Every input by name: numpy arrays, or others that support DLPack, such as those
                of torch and jax.  Only arrays that are not contiguous are copied.  On a GPU also
                arrays in GPU memory that have ``__cuda_array_interface__`` or support DLPack.
                An input that an output continues in its memory is a part of a larger array
                (:meth:`with_room`).
            outputs: Arrays to write to, one for each name, returned instead of new numpy arrays.
            threads: Threads of this run.

        Raises:
            UsageError: A wrong name, shape or type, or a size out of range; the message names what
                is expected.
        """
        executable = self._executable()
        wanted = self._wanted(names)
        arrays, ports = self._fed(feeds)
        given = self._given(wanted, ports, outputs)
        if self._sharing:
            given = self._sharing.fill(arrays, given, ports)
        used = self._signature.threads if threads is None else threads
        results = executable.run(arrays, given, used)
        for number, kind in self._packed[1].items():
            unpack(results[number], kind)
        numbers = range(len(results)) if wanted is None else wanted
        if outputs is None:
            return [results[n] for n in numbers]
        return [own_result(o, given[n], results[n]) for o, n in zip(outputs, numbers, strict=True)]

    def __call__(self, /, *arrays: Any, **named: Any) -> Any:
        """Compute all outputs; returns the output, or a tuple when there are several.

        Args:
            arrays: Inputs in order, as :meth:`run` takes them.
            named: The other inputs, by name; :meth:`run` takes names that Python cannot write,
                arrays to write to, and a number of threads.

        Raises:
            UsageError: As :meth:`run`, or an input is given twice, or there are too many.
        """
        if len(arrays) > len(self._inputs):
            raise UsageError(
                f"{self.name} takes {one_of(self._signature.inputs)}, got {len(arrays)} arrays"
            )
        feeds = dict(zip(self._inputs, arrays, strict=False))
        twice = [name for name in named if name in feeds]
        if twice:
            raise UsageError(f"input {twice[0]!r} is given twice: in order, and by name")
        results = self.run(None, feeds | named)
        return results[0] if len(results) == 1 else tuple(results)

    def prepare(
        self, feeds: Mapping[str, Any], outputs: Sequence[Any], *, threads: int | None = None
    ) -> Callable[[], None]:
        """Return a function that computes all *outputs* from *feeds* each time it is called.

        The arrays are checked once, here, and read in place, so each call uses their current
        contents.
        On a CPU the function has memory of its own and must not be called from two threads at once.
        On a GPU it has ``seconds(n)``, the GPU time of n runs.

        Raises:
            UsageError: As :meth:`run`, or an input is not contiguous, or a run counts sizes of
                outputs.
        """
        if self._sized is not None and self._sized.counted:
            raise UsageError(
                f"a run of {self.name} counts sizes, which the arrays given to prepare cannot tell",
                hint="call run, which returns the part of each array that is its result",
            )
        arrays = self._in_order(feeds)
        ports = self._ports(arrays)
        copies = []
        for number, (port, array) in enumerate(zip(ports[0], arrays, strict=True)):
            if number in self._packed[0]:
                kind = self._packed[0][number]
                copies.append((packed_input(port, kind, array), array, kind))
                arrays[number] = copies[-1][0]
            elif number in self._sharing.inputs:
                arrays[number] = self._sharing.check_input(number, port, array)
            else:
                arrays[number] = self._check("input", port, array)
        given: list[Any] = self._sharing.fill(
            arrays, self._given(None, ports[1], outputs), ports[1]
        )
        used = self._signature.threads if threads is None else threads
        run = self._executable().prepare(arrays, given, used)
        if not any(self._packed):
            return run
        made = [(given[number], kind) for number, kind in self._packed[1].items()]
        return with_packing(run, copies, made)

    def with_room(self, feeds: Mapping[str, Any], capacity: int | None = None) -> dict[str, Any]:
        """*feeds*, where inputs that outputs continue are copied to memory with room for these.

        A call returns such outputs as parts of the same memory, to be the inputs of the next call::

            feeds = model.with_room({"ids": ids, "past": np.zeros((1, 8, 0, 64), np.float32)}, 512)
            ids, feeds["past"] = model.run(["ids", "present"], feeds)

        Args:
            feeds: Inputs by name.
            capacity: Elements along the axis that grows; default: as many as outputs may have.

        Raises:
            UsageError: A capacity is too small, or larger than any output.
        """
        found = dict(feeds)
        for number in self._sharing.inputs:
            name = self._signature.inputs[number].name
            if name in found:
                found[name] = self._sharing.with_room(number, array_of(name, found[name]), capacity)
        return found

    def profile(
        self, feeds: Mapping[str, Array], *, runs: int = 50, threads: int | None = None
    ) -> list[tuple[str, float]]:
        """Raise: only a model compiled in this process can be timed call by call."""
        raise UsageError(
            f"{self.name} was loaded from a library: its calls cannot be timed individually",
            hint="profile the ONNX file with its records instead",
        )

    def trace(
        self, feeds: Mapping[str, Any], *, runs: int = 3, threads: int | None = None
    ) -> Trace:
        """Raise: only the threads of a model compiled in this process can be followed."""
        raise UsageError(
            f"{self.name} was loaded from a library: its threads cannot be followed",
            hint="trace the ONNX file with its records instead",
        )

    def export(self, path: str | Path, pack: str | None = None) -> Path:
        """Raise: only a model compiled in this process can be written to a library."""
        raise UsageError(
            f"{self.name} was loaded from a library", hint="copy that file and its header"
        )

    def _executable(self) -> Runs:
        if self._code is None:
            raise UsageError(
                f"{self.name} is compiled for another machine", hint="export it and run it there"
            )
        check = self._check_code  # read once: another thread's first run may end meanwhile
        if check is not None:
            check()
            self._check_code = None
        return self._code

    def _wanted(self, names: Sequence[str] | None) -> Sequence[int] | None:
        """The numbers of the outputs *names*; ``None`` for all of them, in order."""
        if names is None:
            return None
        if isinstance(names, str):
            raise UsageError("outputs are named by a list", hint=f"pass [{names!r}]")
        unknown = [name for name in names if name not in self._outputs]
        if unknown:
            raise UsageError(
                f"{self.name} has no output {unknown[0]!r}; "
                f"its outputs are {one_of(self._signature.outputs)}"
            )
        if len(set(names)) != len(names):
            raise UsageError("an output is requested twice")
        return [self._outputs[name] for name in names]

    def _ports(self, arrays: Sequence[Any]) -> Ports:
        """The inputs and outputs, with the shapes that *arrays* state."""
        if self._sized is None:
            return self._signature.inputs, self._signature.outputs
        return self._sized.at(arrays)

    def _fed(self, feeds: Mapping[str, Any]) -> tuple[list[Any], Sequence[Port]]:
        """The arrays of a single run, copied where the code cannot read them in place, and the
        outputs, with the shapes that they state."""
        arrays = self._in_order(feeds)
        if self._sized is not None:
            named = zip(self._inputs, arrays, strict=True)
            arrays = [a if hasattr(a, "shape") else array_of(name, a) for name, a in named]
        inputs, outputs = self._ports(arrays)
        for number, kind in self._packed[0].items():
            port = inputs[number]
            arrays[number] = packed_input(port, kind, array_of(port.name, arrays[number]))
        if not self._sharing:
            return [self._accept(port, a) for port, a in zip(inputs, arrays, strict=True)], outputs
        return [self._accepted(*each) for each in zip(count(), inputs, arrays)], outputs

    def _accepted(self, number: int, port: Port, array: Any) -> Any:
        if number in self._sharing.inputs:
            return self._sharing.check_input(number, port, array)
        return self._accept(port, array)

    def _in_order(self, feeds: Mapping[str, Any]) -> list[Any]:
        names = self._inputs
        if not isinstance(feeds, Mapping):
            raise UsageError(
                f"the inputs of {self.name} are given by name, not as {type(feeds).__name__}",
                hint=f"pass {{{', '.join(f'{name!r}: array' for name in names)}}}, or call the "
                "model with arrays in order",
            )
        if len(feeds) != len(names) or any(name not in feeds for name in names):
            raise self._misnamed(feeds)
        return [feeds[name] for name in names]

    def _misnamed(self, feeds: Mapping[str, Any]) -> UsageError:
        unknown = [name for name in feeds if name not in self._inputs]
        missing = [name for name in self._inputs if name not in feeds]
        problem = (
            f"has no input {unknown[0]!r}" if unknown else f"was not given input {missing[0]!r}"
        )
        return UsageError(f"{self.name} {problem}; its inputs are {one_of(self._signature.inputs)}")

    def _given(
        self,
        wanted: Sequence[int] | None,
        ports: Sequence[Port],
        outputs: Sequence[Any] | None,
    ) -> Sequence[Any]:
        """The caller's array for each of the model's outputs, which are *ports* in this call;
        ``None`` where none was passed."""
        if outputs is None:
            return self._none_given
        numbers = range(len(ports)) if wanted is None else wanted
        expected = [ports[n] for n in numbers]
        if len(outputs) != len(expected):
            raise UsageError(
                f"{len(expected)} outputs are requested ({one_of(expected)}), but outputs= has "
                f"{len(outputs)} arrays"
            )
        found: list[Any] = [None] * len(ports)
        for number, port, array in zip(numbers, expected, outputs, strict=True):
            if number in self._sharing.outputs:
                found[number] = self._sharing.check_output(number, port, array)
            else:
                found[number] = self._check("output", port, array, written=True)
        return found

    def __repr__(self) -> str:
        ends = " -> ".join(
            one_of(ports) for ports in (self._signature.inputs, self._signature.outputs)
        )
        return f"<Model {self.name}: {ends}>"

    def _repr_html_(self) -> str:
        return card("Model", self.name, *self._shown())

    def _shown(self) -> tuple[dict[str, str | None], dict[str, str], list[str]]:
        """What a notebook shows: facts, texts to unfold, and tables."""
        memory = self.footprint or f"{bytes_text(self.constant_bytes)} of constants"
        facts: dict[str, str | None] = {"threads": str(self.threads), "memory": str(memory)}
        return facts, {}, [ports_grid(self._signature.inputs, self._signature.outputs)]


def load(path: str | Path) -> Model:
    """Load the compiled network in the library *path*, written by ``export`` or the CLI.

    It runs with the number of threads it was tuned for, but with no more than the cores that this
    process may use; ``ANSORPY_NUM_THREADS`` overrides both.

    Raises:
        ForeignFile: The file is not an ansorpy library, was changed since it was written, or has
            another version of the interface.  Large constants are checked by the first run.
        MissingDependency: It was built for a CPU that this machine does not have.
    """
    file = path_of(path, "a library")
    library = open_library(file)
    metadata = library.metadata
    ports = metadata.input_ports, metadata.output_ports
    signature = Signature(
        metadata.name, *ports, usual_threads(metadata), metadata.constant_bytes,
        metadata.port_aliases,
    )  # fmt: skip
    return Model(signature, library.executable, check=library.check, library=file)


def usual_threads(metadata: Metadata) -> int:
    """The number of threads with which :func:`load` lets a library run."""
    return NUM_THREADS.get() or min(metadata.threads, available_cores())
