"""The interface of engines, and functions that open an engine by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ansorpy.errors import MissingDependency, UsageError
from ansorpy.report.engines.names import ENGINES
from ansorpy.report.inputs import input_specs, random_feeds, read_model

__all__ = ["Array", "Engine", "EngineFactory", "open_engine", "open_peer"]

Array = NDArray[np.generic]


class Engine(Protocol):
    """A loaded model with inputs and outputs in place, so that ``run`` only computes."""

    version: str

    def run(self) -> None:
        """Compute all outputs once, into the same buffers every time."""

    def outputs(self) -> dict[str, Array]:
        """The results of the last run by output name; overwritten by the next one."""


class EngineFactory(Protocol):
    """Loads the model at *path* for *threads* threads and sets its inputs to *feeds*."""

    def __call__(self, path: str, feeds: Mapping[str, Array], threads: int) -> Engine: ...


def open_engine(name: str, path: str, feeds: Mapping[str, Array], threads: int) -> Engine:
    """Load the ONNX file *path* into the engine *name*.

    Raises:
        UsageError: There is no such engine.
        MissingDependency: Its package is not installed.
    """
    if name not in ENGINES:
        raise UsageError(f"unknown engine {name!r}", hint=f"choose from {', '.join(ENGINES)}")
    home, package, extra = ENGINES[name]
    module, attribute = home.split(":")
    try:
        factory: EngineFactory = getattr(import_module(module), attribute)
    except ImportError as error:
        raise MissingDependency(
            f"{name} cannot be loaded: {error}",
            hint=f"pip install {package}, or pip install 'ansorpy[{extra}]'",
        ) from None
    return factory(path, feeds, threads)


def open_peer(
    name: str,
    path: str,
    *,
    threads: int,
    seed: int = 0,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
) -> Engine:
    """Call :func:`open_engine` with seeded random inputs; all arguments are JSON-serializable."""
    specs = input_specs(read_model(path), shapes, dims)
    return open_engine(name, path, random_feeds(specs, seed), threads)
