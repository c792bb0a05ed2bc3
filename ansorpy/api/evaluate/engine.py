"""Ansorpy's models behind the engine protocol, for ``bench`` to load in a separate process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np

from ansorpy.api.arguments import LookupArguments
from ansorpy.api.evaluate.lookup import Lookup
from ansorpy.api.evaluate.models import open_model
from ansorpy.api.plugins import load_plugins
from ansorpy.arrays import Array
from ansorpy.evaluation.engines.protocol import AtSizes, Shapes, SizedEngine
from ansorpy.evaluation.inputs import random_feeds
from ansorpy.runtime.model import Model
from ansorpy.runtime.sizes import SizedPorts
from ansorpy.size_bounds import known_bounds, written_bounds
from ansorpy.size_ranges import AnySize, SizeRange, size_of
from ansorpy.target import Target
from ansorpy.version import __version__

__all__ = ["Ours", "ours_at", "random_inputs", "sendable"]


class Ours:
    """A library, or an ONNX file compiled from records, with inputs and outputs in place.

    Args:
        arguments: As :func:`sendable` makes them.
        plugins: Files or modules with operators that the model has.
        shapes: Shapes of the inputs; those of numbers need not be given.
    """

    version = __version__

    def __init__(
        self,
        path: str,
        *,
        seed: int = 0,
        arguments: LookupArguments,
        shapes: Shapes | None = None,
        plugins: Sequence[str] = (),
    ) -> None:
        load_plugins(plugins)
        lookup, threads = Lookup(Path(path), **_sent(arguments)), arguments.get("threads")
        self._model = open_model(lookup)
        self._threads = threads
        is_tf32 = arguments.get("precision") == "tf32"
        self.precision: str = "tf32" if is_tf32 else "the model's own"
        self._names = [o.name for o in self._model.get_outputs()]
        self.feed(random_inputs(self._model, shapes or {}, seed))

    @property
    def model(self) -> Model:
        return self._model

    def feed(self, feeds: Mapping[str, Array]) -> None:
        """Take other inputs, and the arrays that a first run returns as its outputs.

        An array that a run fills in part, because only the data tell its size, is as large as it
        may have to be.
        """
        self._feeds = self._model.with_room(feeds)
        self._results = self._model.run(self._names, self._feeds, threads=self._threads)
        inputs, ports = self._model.get_inputs(), self._model.get_outputs()
        if sized := SizedPorts.of(tuple(inputs), tuple(ports)):
            ports = [*sized.at([self._feeds[port.name] for port in inputs])[1]]
        self._outputs = [
            result if result.shape == port.shape else np.empty(port.shape, port.dtype)
            for result, port in zip(self._results, ports, strict=True)
        ]

    def run(self) -> None:
        """Run one inference into the same output arrays."""
        self._results = self._model.run(
            self._names, self._feeds, outputs=self._outputs, threads=self._threads
        )

    def outputs(self) -> dict[str, Array]:
        """The arrays that every run writes."""
        return dict(zip(self._names, self._results, strict=True))


def random_inputs(model: Model, shapes: Shapes, seed: int) -> dict[str, Array]:
    """Seeded random inputs of *model*, within their bounds.

    *shapes* has those that its ports leave open.
    """
    ports = model.get_inputs()
    return random_feeds((replace(p, shape=tuple(shapes.get(p.name, p.shape))) for p in ports), seed)


def ours_at(
    path: str, *, seed: int = 0, arguments: LookupArguments, sizes: Sequence[Shapes],
    plugins: Sequence[str] = (),
) -> SizedEngine:  # fmt: skip
    """:class:`Ours` with inputs of several *sizes*, which the model must take."""
    engine = Ours(path, seed=seed, arguments=arguments, shapes=sizes[0], plugins=plugins)
    return AtSizes(engine, lambda size: random_inputs(engine.model, sizes[size], seed))


def sendable(arguments: LookupArguments) -> LookupArguments:
    """*arguments* for another process: what JSON cannot tell apart is written as text.

    Raises:
        UsageError: A size or bound is none.
    """

    def written(size: AnySize, what: str) -> AnySize:
        found = size_of(size, what)
        return str(found) if isinstance(found, SizeRange) else found

    found, target = _each_size(arguments, written), arguments.get("target")
    if bounds := arguments.get("bounds"):
        found["bounds"] = written_bounds(bounds)
    if db := arguments.get("db"):
        found["db"] = str(db)
    if isinstance(target, Target):
        found["target"] = target.name
    return found


def _sent(arguments: LookupArguments) -> LookupArguments:
    """*arguments* as they were before :func:`sendable`."""
    found = _each_size(arguments, size_of)
    if bounds := arguments.get("bounds"):
        found["bounds"] = known_bounds(bounds)
    return found


def _each_size(
    arguments: LookupArguments, of: Callable[[AnySize, str], AnySize]
) -> LookupArguments:
    """*arguments*, where each size of a dimension or shape is what *of* makes of it."""
    found = dict(arguments)
    if dims := arguments.get("dims"):
        found["dims"] = {name: of(size, name) for name, size in dims.items()}
    if shapes := arguments.get("shapes"):
        found["shapes"] = {name: [of(n, name) for n in shape] for name, shape in shapes.items()}
    return cast(LookupArguments, found)
