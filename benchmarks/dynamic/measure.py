"""The parts of the benchmark; each adds to a network's result what is still missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ansorpy.api.evaluate.engine import ours_at
from ansorpy.errors import AnsorpyError
from ansorpy.evaluation.bench.processes import Contender, EngineProcess
from ansorpy.evaluation.bench.turns import compare, compare_sizes
from ansorpy.evaluation.engines.names import PEERS
from ansorpy.evaluation.engines.protocol import Shapes, open_peer_at
from ansorpy.evaluation.onnx_inputs import read_model
from ansorpy.evaluation.verify import compare_outputs
from ansorpy.measure.probe.disturbance import CoreProbe
from ansorpy.measure.run.undisturbed import Undisturbed
from benchmarks.common.cells import OURS
from benchmarks.dynamic import steps
from benchmarks.dynamic.libraries import (
    LibrarySettings,
    any_size_library,
    one_size_library,
)
from benchmarks.dynamic.result import (
    ONNXRUNTIME,
    DynamicResult,
    FirstCall,
    Library,
    Positions,
    SizeTimes,
)
from benchmarks.dynamic.steps import OrtSteps, OurSteps, Stepper
from benchmarks.dynamic.suite import DynamicModel, cache_pairs, shapes_at

__all__ = ["PARTS", "Bench", "Counts"]

OURS_AT, OURS_FIXED = "ansorpy.api.evaluate.engine:ours_at", "ansorpy.api.evaluate.engine:Ours"
PEER_AT = "ansorpy.evaluation.engines.protocol:open_peer_at"
OUR_STEPS, ORT_STEPS = "benchmarks.dynamic.steps:OurSteps", "benchmarks.dynamic.steps:OrtSteps"
"""What engines' processes call."""


@dataclass(frozen=True)
class Counts:
    """How much is measured.

    Args:
        tuned: Random sizes at which our library meets one tuned for that size.
        peers: Random sizes at which it meets the peers.
        passes: Passes of each engine over a decoder's positions.
        checked: First steps of a decoder after which its caches are compared with onnxruntime's.
        piece: Positions that an engine steps through in one turn.
        repeats: Later calls at each size, beside the first one.
        untimed_s: Seconds of untimed steps before each piece.
    """

    tuned: int = 10
    peers: int = 30
    passes: int = 3
    checked: int = 5
    piece: int = 64
    repeats: int = 9
    untimed_s: float = 0.1
    timeout_s: float = 900.0


class Bench:
    """One network's measurements; ``found`` is what there is, and *keep* saves it as it grows."""

    def __init__(
        self,
        model: DynamicModel,
        settings: LibrarySettings,
        found: DynamicResult,
        keep: Callable[[DynamicResult], None],
        say: Callable[[str], None],
        counts: Counts | None = None,
        peers: Sequence[str] = PEERS,
    ) -> None:
        self.model, self.settings, self.found = model, settings, found
        self.counts, self.peers = counts or Counts(), peers
        self._keep, self._say = keep, say
        self._path = settings.network(model)

    def compile(self) -> None:
        """Compile the library for all sizes, and compare its outputs with onnxruntime's.

        A failure is recorded, and the other engines are timed alone.
        """
        try:
            library = any_size_library(self.model, self.settings)
            if library != self.found.dynamic:
                self._add(
                    dynamic=library, errors={}, fixed=(), tuned=(), peers=(), positions=None,
                    first_calls=(),
                )  # fmt: skip
                self._say(f"{self.model.name}: compiled in {library.tuning_s:.0f} s")
            if not self.found.errors:
                self._add(errors=self._errors(self._library))
        except AnsorpyError as reason:
            self._fail(OURS, reason)

    def tuned(self) -> None:
        """Our time at random sizes, beside that of a library tuned for the size as long."""
        if OURS in self.found.failures:
            return
        known = {times.size for times in self.found.tuned}
        for size in self._sizes(self.counts.tuned):
            fixed = self._fixed(size)
            if size in known:
                continue
            engines = [
                self._ours([size]),
                Contender("fixed", OURS_FIXED, self._given(fixed)),
            ]
            timings = compare(engines, is_disturbed=self._probe())
            self._add(tuned=(*self.found.tuned, SizeTimes.of(size, timings)))
            self._say(f"{self._at(size)}: {self.found.tuned[-1].over_fixed:.2f} of that size's own")

    def beside_peers(self) -> None:
        """All engines' times at random sizes, each opened once for all of them.

        Sizes at which one of them has no time yet are measured again.
        """
        names = [*self.peers] if OURS in self.found.failures else [OURS, *self.peers]
        whole = tuple(times for times in self.found.peers if set(names) <= set(times.engines))
        known, sizes = {times.size for times in whole}, self._sizes(self.counts.peers)
        left = {n: self._at(size) for n, size in enumerate(sizes) if size not in known}
        if not left:
            return
        self._add(peers=whole)
        engines = [
            self._ours(sizes) if name == OURS else self._peer(name, sizes) for name in names
        ]  # fmt: skip
        timed = compare_sizes(
            engines, left, left_out=self._fail, is_disturbed=self._probe()
        )  # fmt: skip
        for number, timings in zip(left, timed, strict=True):
            self._add(peers=(*self.found.peers, SizeTimes.of(sizes[number], timings)))
            times = ", ".join(f"{name} {t.median_ms:.3f} ms" for name, t in timings.items())
            self._say(f"{self._at(sizes[number])}: {times}")

    def positions(self) -> None:
        """A decoder's steps from its first position to its last, engine by engine in pieces."""
        caches = self._caches()
        if not caches:
            return
        threads = self.settings.threads
        given: dict[str, Any] = {"path": str(self._path), "caches": caches, "threads": threads}
        engines = [Contender(ONNXRUNTIME, ORT_STEPS, given)]
        if OURS not in self.found.failures:
            ours = {**given, "path": self._library.file}
            try:
                self._demand_same_steps(OurSteps(**ours), OrtSteps(**given))
                engines.insert(0, Contender(OURS, OUR_STEPS, ours))
            except AnsorpyError as reason:
                self._fail(OURS, reason)
        kept = self.found.positions
        known = {} if kept is None else dict(kept.passes)
        passes = {engine.name: known.get(engine.name, ()) for engine in engines}
        if min(map(len, passes.values())) >= self.counts.passes:
            return
        with ExitStack() as stack:
            processes = []
            for engine in engines:
                process = stack.enter_context(EngineProcess(engine, steps.__name__))
                process.load(self.counts.timeout_s)
                processes.append(process)
            while min(map(len, passes.values())) < self.counts.passes:
                taken = self._pass(processes)
                passes = {name: (*before, taken[name]) for name, before in passes.items()}
                self._add(positions=Positions(passes=passes))
                self._say(f"{self.model.name}: a pass over all positions")

    def costs(self) -> None:
        """First calls at new sizes; the library for one size that ours is compared with."""
        if OURS in self.found.failures:
            return
        sizes = self._sizes(self.counts.tuned)
        if not self.found.fixed:
            self._fixed(sizes[len(sizes) // 2])
        if self.found.first_calls:
            return
        with EngineProcess(Contender(OURS, "", {}), steps.__name__) as process:
            request = {
                "library": self._library.file, "sizes": [self._shapes(s) for s in sizes],
                "threads": self.settings.threads, "seed": self.settings.seed,
                "repeats": self.counts.repeats,
            }  # fmt: skip
            pairs = process.ask("first_calls", request, self.counts.timeout_s)["calls_ns"]
        calls = [
            FirstCall(size=size, first_us=first * 1e-3, later_us=later * 1e-3)
            for size, (first, later) in zip(sizes[1:], pairs, strict=True)
        ]
        self._add(first_calls=tuple(calls))

    def _pass(self, processes: Sequence[EngineProcess]) -> dict[str, tuple[float, ...]]:
        """Microseconds of each engine's steps; the engines take turns, in alternating order."""
        taken: dict[str, list[float]] = {process.name: [] for process in processes}
        undisturbed = Undisturbed(self._probe())
        for turn, (start, stop) in enumerate(self._pieces()):
            request = {"start": start, "stop": stop, "untimed_s": self.counts.untimed_s}
            for process in processes[:: 1 if turn % 2 == 0 else -1]:
                piece = partial(process.ask, "steps", request, self.counts.timeout_s)
                answer = undisturbed(piece)
                taken[process.name] += [ns * 1e-3 for ns in answer["steps_ns"]]
        return {name: tuple(microseconds) for name, microseconds in taken.items()}

    def _demand_same_steps(self, ours: Stepper, theirs: Stepper) -> None:
        """Raise unless both make the same caches in the first steps.

        Raises:
            VerificationFailed: They differ.
        """
        for decoder in (ours, theirs):
            decoder.begin(self.model.low)
            for _ in range(self.counts.checked):
                decoder.step()
        name = f"{self.model.name}, steps"
        compare_outputs(name, ONNXRUNTIME, ours.caches(), theirs.caches(), {}).demand()

    def _pieces(self) -> Iterator[tuple[int, int]]:
        end = self.model.high + 1
        for start in range(self.model.low, end, self.counts.piece):
            yield start, min(start + self.counts.piece, end)

    def _caches(self) -> list[dict[str, Any]]:
        """The fields of each :class:`~benchmarks.dynamic.steps.Cache` of the network, if any."""
        pairs, most = cache_pairs(self._path), self._shapes(self.model.high + 1)
        found = []
        for value in read_model(self._path).graph.input:
            if value.name in pairs:
                axes = [dim.dim_param for dim in value.type.tensor_type.shape.dim]
                found.append({
                    "past": value.name, "present": pairs[value.name],
                    "shape": list(most[value.name]), "axis": axes.index(self.model.dim),
                })  # fmt: skip
        return found

    def _errors(self, library: Library) -> dict[int, float]:
        """The largest difference from onnxruntime at the ends of the range and between them."""
        sizes = sorted({self.model.low, *self._sizes(1), self.model.high})
        shapes = [self._shapes(size) for size in sizes]
        threads, seed = self.settings.threads, self.settings.seed
        ours = ours_at(library.file, seed=seed, arguments={"threads": threads}, sizes=shapes)
        theirs = open_peer_at(
            ONNXRUNTIME, str(self._path), threads=threads, seed=seed, sizes=shapes
        )
        errors = {}
        for number, size in enumerate(sizes):
            for engine in (ours, theirs):
                engine.choose(number)
                engine.run()
            found = compare_outputs(
                self._at(size), ONNXRUNTIME, ours.outputs(), theirs.outputs(), {}
            )
            found.demand()
            errors[size] = float(np.max([check.error for check in found.checks]))
        return errors

    def _fixed(self, size: int) -> Library:
        library = one_size_library(self.model, size, self._library.trials, self.settings)
        if library not in self.found.fixed:
            others = [fixed for fixed in self.found.fixed if fixed.size != size]
            self._add(fixed=(*others, library))
            self._say(f"{self._at(size)}: compiled in {library.tuning_s:.0f} s")
        return library

    def _ours(self, sizes: Sequence[int]) -> Contender:
        shapes = [self._shapes(size) for size in sizes]
        given = {**self._given(self._library), "sizes": shapes}
        return Contender(OURS, OURS_AT, given)

    def _given(self, library: Library) -> dict[str, Any]:
        arguments = {"threads": self.settings.threads}
        return {"path": library.file, "seed": self.settings.seed, "arguments": arguments}

    def _peer(self, name: str, sizes: Sequence[int]) -> Contender:
        given = {
            "name": name, "path": str(self._path), "threads": self.settings.threads,
            "seed": self.settings.seed, "sizes": [self._shapes(size) for size in sizes],
        }  # fmt: skip
        return Contender(name, PEER_AT, given)

    @property
    def _library(self) -> Library:
        assert self.found.dynamic is not None
        return self.found.dynamic

    def _sizes(self, count: int) -> tuple[int, ...]:
        return self.model.random_sizes(count, self.settings.seed)

    def _shapes(self, size: int) -> Shapes:
        return shapes_at(self._path, self.model.dim, size)

    def _at(self, size: int) -> str:
        return f"{self.model.name}, {self.model.dim}={size}"

    def _probe(self) -> Callable[[], bool]:
        return CoreProbe(self.settings.threads).is_disturbed

    def _add(self, **parts: object) -> None:
        self.found = self.found.model_copy(update=parts)
        self._keep(self.found)

    def _fail(self, name: str, reason: AnsorpyError) -> None:
        self._add(failures={**self.found.failures, name: reason.message})
        self._say(f"{self.model.name}: {name}: {reason.message}")


PARTS: Mapping[str, Callable[[Bench], None]] = {
    "tuned": Bench.tuned,
    "peers": Bench.beside_peers,
    "positions": Bench.positions,
    "costs": Bench.costs,
}
"""The parts of the benchmark by name, in order."""
