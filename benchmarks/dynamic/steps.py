"""In an engine's process: the steps of a decoder, and first calls at new sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter_ns
from typing import Any, Protocol

import numpy as np
import onnxruntime

from ansorpy.arrays import Array
from ansorpy.evaluation.bench.handlers import opened, reporting
from ansorpy.evaluation.engines.ort import cpu_session
from ansorpy.evaluation.engines.protocol import Shapes
from ansorpy.evaluation.inputs import random_value
from ansorpy.measure.workers.protocol import Message
from ansorpy.measure.workers.worker import Handler
from ansorpy.runtime.model import load
from ansorpy.version import __version__

__all__ = ["Cache", "OrtSteps", "OurSteps", "Stepper", "first_calls", "make_handlers", "steps"]

F32, I64 = np.dtype(np.float32), np.dtype(np.int64)


@dataclass(frozen=True)
class Cache:
    """A cache of a decoder: the input *past* and the output *present*, which has one row more.

    The extent of *axis* in *shape* is the largest number of rows.
    """

    past: str
    present: str
    shape: Sequence[int]
    axis: int

    def at(self, rows: int) -> tuple[int, ...]:
        """The shape of so many rows."""
        return *self.shape[: self.axis], rows, *self.shape[self.axis + 1 :]


class Stepper(Protocol):
    """A decoder that hands its caches from one step to the next."""

    version: str
    past: int

    def begin(self, past: int) -> None:
        """Have random caches of *past* rows."""

    def step(self) -> None:
        """Compute one token; its caches are those of the next step."""

    def back(self) -> None:
        """Return to the caches before the last step."""

    def caches(self) -> dict[str, Array]:
        """The caches that the next step reads, by the name of their input."""


class OurSteps:
    """Our library, called as by a user, on parts of arrays that have room for all rows.

    The new caches begin where the old ones do, so each step writes one row.
    """

    version = __version__
    precision = "float32"

    def __init__(self, path: str, *, threads: int, caches: Sequence[Mapping[str, Any]]) -> None:
        self._model, self._threads = load(path), threads
        self._caches = [Cache(**cache) for cache in caches]
        names = {cache.present for cache in self._caches}
        outputs = self._model.get_outputs()
        self._scores = {p.name: np.zeros(p.shape, p.dtype) for p in outputs if p.name not in names}
        self._order = [port.name for port in outputs]
        self._memory = {c.past: random_value(tuple(c.shape), F32, 0, c.past) for c in self._caches}
        self.past = 0

    def begin(self, past: int) -> None:
        self.past = past

    def step(self) -> None:
        feeds = self.caches()
        made = {c.present: self._rows(c, self.past + 1) for c in self._caches} | self._scores
        outputs = [made[name] for name in self._order]
        self._model.run(self._order, {"ids": _TOKEN, **feeds}, outputs, threads=self._threads)
        self.past += 1

    def back(self) -> None:
        self.past -= 1

    def caches(self) -> dict[str, Array]:
        return {cache.past: self._rows(cache, self.past) for cache in self._caches}

    def _rows(self, cache: Cache, rows: int) -> Array:
        """The first *rows* of the memory."""
        return self._memory[cache.past][(slice(None),) * cache.axis + (slice(rows),)]


class OrtSteps:
    """A session of onnxruntime, which allocates each step's caches; they are bound, not copied."""

    version = str(onnxruntime.__version__)
    precision = "float32"

    def __init__(self, path: str, *, threads: int, caches: Sequence[Mapping[str, Any]]) -> None:
        self._session = cpu_session(path, threads)
        self._caches = [Cache(**cache) for cache in caches]
        self._others = [
            output.name for output in self._session.get_outputs()
            if output.name not in {cache.present for cache in self._caches}
        ]  # fmt: skip
        self._token = onnxruntime.OrtValue.ortvalue_from_numpy(_TOKEN)
        self._binding = self._session.io_binding()
        self.begin(0)

    def begin(self, past: int) -> None:
        self.past = past
        arrays = (random_value(c.at(past), F32, 0, c.past) for c in self._caches)
        self._values = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in arrays]
        self._before = self._values

    def step(self) -> None:
        binding = self._binding
        binding.bind_ortvalue_input("ids", self._token)
        for cache, value in zip(self._caches, self._values, strict=True):
            binding.bind_ortvalue_input(cache.past, value)
            binding.bind_output(cache.present)
        for name in self._others:
            binding.bind_output(name)
        self._session.run_with_iobinding(binding)
        self._before, self._values = self._values, binding.get_outputs()[: len(self._caches)]
        self.past += 1

    def back(self) -> None:
        self._values = self._before
        self.past -= 1

    def caches(self) -> dict[str, Array]:
        pairs = zip(self._caches, self._values, strict=True)
        return {cache.past: value.numpy() for cache, value in pairs}


_TOKEN = np.ones((1, 1), I64)


def steps(decoder: Stepper, *, start: int, stop: int, untimed_s: float) -> list[int]:
    """Nanoseconds of each step from position *start* to *stop*, after untimed ones at *start*."""
    if decoder.past != start:
        decoder.begin(start)
    begin = perf_counter_ns()
    while perf_counter_ns() - begin < untimed_s * 1e9:
        decoder.step()
        decoder.back()
    taken = []
    for _ in range(start, stop):
        before = perf_counter_ns()
        decoder.step()
        taken.append(perf_counter_ns() - before)
    return taken


def first_calls(
    library: str, *, sizes: Sequence[Shapes], threads: int, seed: int, repeats: int
) -> list[tuple[int, float]]:
    """Nanoseconds of the first call at each size but the first one, and the median of later ones.

    Each call follows one at the first size, so all find the same in the caches, and its outputs are
    arrays that another model of the same library has written, so their memory is there.
    """
    other, model = load(library), load(library)

    def call_at(shapes: Shapes) -> Callable[[], object]:
        feeds = model.with_room({
            port.name: random_value(tuple(shapes[port.name]), port.dtype, seed, port.name)
            for port in model.get_inputs()
        })  # fmt: skip
        outputs = other.run(None, feeds, threads=threads)
        return lambda: model.run(None, feeds, outputs, threads=threads)

    home = call_at(sizes[0])
    found = []
    for call in map(call_at, sizes[1:]):
        first, *later = _nanoseconds((home, call) for _ in range(1 + repeats))
        found.append((first, median(later)))
    return found


def _nanoseconds(pairs: Iterable[tuple[Callable[[], object], Callable[[], object]]]) -> list[int]:
    """Time the second call of each pair."""
    taken = []
    for before, call in pairs:
        before()
        start = perf_counter_ns()
        call()
        taken.append(perf_counter_ns() - start)
    return taken


def make_handlers() -> Mapping[str, Handler]:
    """The handlers ``load`` of a :class:`Stepper`, ``steps`` and ``first_calls``."""
    loaded: list[Stepper] = []

    def made(request: Message) -> Message:
        loaded.append(opened(request))
        return Message("loaded", {"version": loaded[0].version})

    def timed(request: Message) -> Message:
        fields: dict[str, Any] = dict(request.fields)
        return Message("timed", {"steps_ns": steps(loaded[0], **fields)})

    def first(request: Message) -> Message:
        fields: dict[str, Any] = dict(request.fields)
        return Message("timed", {"calls_ns": first_calls(**fields)})

    return {"load": reporting(made), "steps": reporting(timed), "first_calls": reporting(first)}
