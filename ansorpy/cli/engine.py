"""Ansorpy's models behind the engine protocol, for ``bench`` to load in a separate process."""

from __future__ import annotations

from pathlib import Path

from ansorpy.api.arguments import HostLookupArguments
from ansorpy.cli.lookup import Lookup
from ansorpy.cli.models import open_model
from ansorpy.report.engines.protocol import Array
from ansorpy.report.inputs import random_value
from ansorpy.version import __version__

__all__ = ["Ours"]


class Ours:
    """A library, or an ONNX file compiled from records, with fixed inputs and outputs."""

    version = __version__

    def __init__(self, path: str, *, seed: int = 0, arguments: HostLookupArguments) -> None:
        lookup, threads = Lookup(Path(path), **arguments), arguments.get("threads")
        model = open_model(lookup)
        self._model = model
        self._threads = threads
        self._feeds = {
            i.name: random_value(i.shape, i.dtype, seed, i.name) for i in model.get_inputs()
        }
        self._names = [o.name for o in model.get_outputs()]
        self._outputs = model.run(self._names, self._feeds, threads=threads)

    def run(self) -> None:
        """Run one inference into the same output arrays."""
        self._model.run(self._names, self._feeds, outputs=self._outputs, threads=self._threads)

    def outputs(self) -> dict[str, Array]:
        """The arrays that every run writes."""
        return dict(zip(self._names, self._outputs, strict=True))
