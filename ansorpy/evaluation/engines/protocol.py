"""The interface of engines, and functions that open an engine by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pkgutil import resolve_name
from typing import Protocol

from ansorpy.arrays import Array
from ansorpy.errors import MissingDependency, UsageError
from ansorpy.evaluation.engines.names import ENGINES, demand_engines
from ansorpy.evaluation.inputs import random_feeds
from ansorpy.evaluation.onnx_inputs import input_specs, read_model
from ansorpy.size_bounds import AnyBound

__all__ = [
    "AtSizes", "Bounds", "Engine", "EngineFactory", "FedEngine", "Shapes", "SizedEngine",
    "bounds_of", "open_engine", "open_peer", "open_peer_at", "refusing",
]  # fmt: skip

Shapes = Mapping[str, Sequence[int]]
"""The shape of each input, by name."""
Bounds = Mapping[str, Sequence[tuple[int, int]]]
"""The smallest and the largest extent of each axis of each input, by name."""


class Engine(Protocol):
    """A loaded model with inputs and outputs in place, so that ``run`` only computes."""

    version: str
    precision: str
    """The types that it computes in."""

    def run(self) -> None:
        """Compute all outputs once, into the same buffers every time."""

    def outputs(self) -> dict[str, Array]:
        """The results of the last run by output name; overwritten by the next one."""


class FedEngine(Engine, Protocol):
    """An engine whose inputs can be replaced."""

    def feed(self, feeds: Mapping[str, Array]) -> None:
        """Put other inputs in place, of any shapes that the engine was opened for."""


class SizedEngine(Engine, Protocol):
    """An engine for inputs of several sizes."""

    def choose(self, size: int) -> None:
        """Put inputs of the size with this number in place."""


class EngineFactory(Protocol):
    """Loads the model at *path* for *threads* threads and sets its inputs to *feeds*.

    Later inputs may have any shapes within *bounds*; without, those of *feeds*.
    """

    def __call__(
        self, path: str, feeds: Mapping[str, Array], threads: int, bounds: Bounds | None = None
    ) -> FedEngine: ...


class AtSizes:
    """An engine with the inputs that *feeds_at* makes for each size; it begins with the first."""

    def __init__(self, engine: FedEngine, feeds_at: Callable[[int], Mapping[str, Array]]) -> None:
        self.version, self.precision = engine.version, engine.precision
        self._engine = engine
        self._feeds_at = feeds_at
        self._size = 0
        self.run, self.outputs = engine.run, engine.outputs

    def choose(self, size: int) -> None:
        if size != self._size:
            self._engine.feed(self._feeds_at(size))
            self._size = size


def bounds_of(sizes: Sequence[Shapes]) -> Bounds:
    """What contains the shapes of each input in all of *sizes*."""
    return {
        name: [(min(axis), max(axis)) for axis in zip(*(s[name] for s in sizes), strict=True)]
        for name in sizes[0]
    }


@contextmanager
def refusing(
    engine: str, hint: Callable[[], str | None] = lambda: None, *, line: int = 0
) -> Iterator[None]:
    """Code of another *engine*, whose errors say that it does not run the model.

    *line* is the number of the line that tells the reason.

    Raises:
        UsageError: It raised an error.
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # the exception classes of engines have no common base class
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise UsageError(f"{engine} does not run this model: {lines[line]}", hint=hint()) from error


def open_engine(
    name: str,
    path: str,
    feeds: Mapping[str, Array],
    threads: int,
    bounds: Bounds | None = None,
) -> FedEngine:
    """Load the ONNX file *path* into the engine *name*, for the shapes of *feeds* or in *bounds*.

    Raises:
        UsageError: There is no such engine.
        MissingDependency: Its package is not installed.
    """
    demand_engines([name])
    home, package, extra = ENGINES[name]
    try:
        factory: EngineFactory = resolve_name(home)
    except ImportError as error:
        raise MissingDependency(
            f"{name} cannot be loaded: {error}",
            hint=f"pip install {package}, or pip install 'ansorpy[{extra}]'",
        ) from None
    return factory(path, feeds, threads, bounds)


def open_peer(
    name: str, path: str, *, threads: int, seed: int = 0, shapes: Shapes | None = None,
    bounds: Mapping[str, AnyBound] | None = None,
) -> FedEngine:  # fmt: skip
    """Call :func:`open_engine` with seeded random inputs; all arguments are JSON-serializable.

    *bounds* are those of the inputs' elements.
    """
    specs = input_specs(read_model(path), shapes, bounds=bounds)
    return open_engine(name, path, random_feeds(specs, seed), threads)


def open_peer_at(
    name: str, path: str, *, threads: int, seed: int = 0, sizes: Sequence[Shapes],
    bounds: Mapping[str, AnyBound] | None = None,
) -> SizedEngine:  # fmt: skip
    """The same for several *sizes*, each the shapes of all inputs: one engine, opened for all."""
    model = read_model(path)

    def feeds_at(size: int) -> Mapping[str, Array]:
        return random_feeds(input_specs(model, sizes[size], bounds=bounds), seed)

    return AtSizes(open_engine(name, path, feeds_at(0), threads, bounds_of(sizes)), feeds_at)
