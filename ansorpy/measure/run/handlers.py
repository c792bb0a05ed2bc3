"""Handlers of the run worker, which holds one task's arrays, and checks and times its candidates.

A :class:`~ansorpy.measure.run.device.TaskOpener` determines where candidates run: on the cores of
this process, unless another module's ``make_handlers`` passes a different one.  A bad candidate may
kill the process; the driver restarts it and opens the task again.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import numpy as np

from ansorpy.arrays import Array, Floats, Ints
from ansorpy.codegen.llvm.objects.timing import bench_address
from ansorpy.errors import AnsorpyError, CodegenError, DeviceLost
from ansorpy.ir.analysis.magnitude import magnitude_of
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.interpret import evaluate_points
from ansorpy.ir.tensor import ComputeOp
from ansorpy.ir.text.serialize import dag_from_json
from ansorpy.measure.build.built import Built, built_from_parts
from ansorpy.measure.check.compare import Comparison, compare, least_scale, sample_points, tolerance
from ansorpy.measure.check.compare import stated_error as error_of
from ansorpy.measure.check.flips import may_flip, without_flips
from ansorpy.measure.probe.loops import team_kernel
from ansorpy.measure.result import TrialKind
from ansorpy.measure.run.device import Candidate, OpenTask, TaskOpener
from ansorpy.measure.run.host import HostTask
from ansorpy.measure.run.timing import Timing, Yardstick, time_calls, time_interleaved
from ansorpy.measure.run.undisturbed import Undisturbed
from ansorpy.measure.workers.messages import (
    KnownProgram,
    MeasureRequest,
    OpenRequest,
    ReferenceMade,
    RetimeRequest,
)
from ansorpy.measure.workers.protocol import Message
from ansorpy.measure.workers.worker import Handler

__all__ = ["RunSession", "make_handlers", "sampled_magnitude", "warm_up"]


_MAGNITUDES = 128
"""Number of points at which magnitudes are sampled; few suffice for their median."""


class RunSession:
    """State of the run worker: the open task and its reference.

    If a GPU's context is lost, the process ends, as after a crash on a CPU, and another takes over.
    After other failures of a candidate, the answer says whether the process is still usable.
    """

    def __init__(self, opener: TaskOpener = HostTask) -> None:
        self._opener = opener
        self._options = OpenRequest(seed=0, threads=1, reuse_distance_bytes=0, check_points=0)
        self._task: OpenTask | None = None
        self._reference: list[Array] = []
        self._magnitudes: Sequence[float] = ()
        self._undisturbed = Undisturbed(lambda: self.task.is_disturbed())
        self._beside: tuple[str, Candidate] | None = None
        """The program that candidates are timed beside, by its digest."""
        self._loaded = ExitStack()

    @property
    def task(self) -> OpenTask:
        if self._task is None:
            raise CodegenError("no task is open")
        return self._task

    def handlers(self) -> Mapping[str, Handler]:
        """The worker's handlers by kind of message."""
        return {
            "open": _or_end(self.open),
            "reference": _or_end(self.reference),
            "measure": _or_end(self.measure),
            "retime": _or_end(self.retime),
        }

    def open(self, message: Message) -> Message:
        """Make the inputs of a task, and read its reference outputs if the message has them."""
        dag = dag_from_json(message.blobs[0])
        self.begin(dag, OpenRequest.model_validate(message.fields))
        self._reference = [
            np.frombuffer(blob, op.dtype.numpy).reshape(op.shape)
            for op, blob in zip(dag.outputs, message.blobs[1:], strict=len(message.blobs) > 1)
        ]
        return Message("opened")

    def begin(self, dag: ComputeDAG, options: OpenRequest) -> None:
        """Make the inputs of the task that *dag* defines; it has no reference yet."""
        self._unload()
        self._task, self._reference = None, []
        self._options, self._magnitudes = options, options.magnitudes
        self._task = self._opener(dag, options.seed, options.threads)

    def reference(self, message: Message) -> Message:
        """Run the reference once, check sampled points, and keep and return its outputs.

        The interpreter runs first: it reports an out-of-bounds read, which may crash compiled code.
        """
        if self._options.check_points:
            self._magnitudes = self._sampled_magnitudes()
        built = built_from_parts(message.fields, message.blobs)
        with self.task.load(built) as candidate:
            candidate.check()
        outputs = [array.copy() for array in self.task.results()]
        found = self._points_comparison(outputs)
        if not found.ok:
            return _failed(TrialKind.WRONG_RESULT, found.reason, found.error)
        self._reference = outputs
        made = ReferenceMade(magnitudes=tuple(self._magnitudes))
        return Message("reference", made.model_dump(), tuple(o.tobytes() for o in outputs))

    def measure(self, message: Message) -> Message:
        """Run a candidate once on guarded buffers, compare all outputs, then time it."""
        request = MeasureRequest.model_validate(message.fields)
        begin = time.perf_counter()
        try:
            own, others = message.blobs[: request.blobs], message.blobs[request.blobs :]
            with self.task.load(built_from_parts(request.built, own)) as candidate:
                first_s = candidate.check()
                worst = self.compared(request.stated_error)
                check_s = time.perf_counter() - begin
                if not worst.ok:
                    return _failed(TrialKind.WRONG_RESULT, worst.reason, worst.error, begin)
                timing = self._timing(candidate, first_s, request, others)
        except DeviceLost:
            raise
        except AnsorpyError as error:
            is_usable = self.task.recover()
            return _failed(TrialKind.RUN_ERROR, str(error), 0.0, begin, is_usable)
        return _timed(timing, worst.error, request, begin, check_s)

    def check_alone(self, built: Built, stated_error: float) -> Comparison:
        """Run a candidate once on guarded buffers; compare sampled points with the interpreter.

        Raises:
            CodegenError: It returned an error code, or wrote outside its buffers.
        """
        with self.task.load(built) as candidate:
            candidate.check()
            found = self._points_comparison(self.task.results(), stated_error)
            if not found.ok and not self._magnitudes and self._options.check_points:
                # Perhaps all values are small next to what they are computed from.
                self._magnitudes = self._sampled_magnitudes()
                found = self._points_comparison(self.task.results(), stated_error)
        return found

    def retime(self, message: Message) -> Message:
        """Time several candidates in turns; their outputs were compared when first measured."""
        request = RetimeRequest.model_validate(message.fields)
        try:
            timings = self._retimings(request, message.blobs)
        except DeviceLost:
            raise
        except AnsorpyError as error:
            return Message("error", {"text": str(error), "is_usable": self.task.recover()})
        return Message("retimed", {"seconds": [timing.seconds for timing in timings]})

    def _retimings(self, request: RetimeRequest, given: Sequence[bytes]) -> list[Timing]:
        end = time.perf_counter() + request.within_s
        blobs = iter(given)
        with ExitStack() as loaded:
            candidates = []
            for header, count in zip(request.built, request.blobs, strict=True):
                built = built_from_parts(header, [next(blobs) for _ in range(count)])
                candidate = loaded.enter_context(self.task.load(built))
                candidate.check()
                candidate.prepare(self._options.reuse_distance_bytes)
                candidates.append(candidate)
            return time_interleaved(
                [candidate.burst for candidate in candidates],
                request.policy,
                self._undisturbed,
                [candidate.unit for candidate in candidates],
                lambda: end - time.perf_counter(),
            )

    def _timing(
        self, candidate: Candidate, first_s: float, request: MeasureRequest, others: Sequence[bytes]
    ) -> Timing:
        """Time a candidate unless its checking run was already far too slow.

        *others* are the blobs of the yardstick.
        """
        policy, incumbent_s = request.policy, request.incumbent_s
        fresh_bytes = candidate.fresh_bytes
        if incumbent_s is not None:
            slow_s = policy.slow_factor * incumbent_s + 2 * policy.cold_s(fresh_bytes)
            if first_s > slow_s:
                return Timing((first_s,), is_slow=True)
        yardstick = self._yardstick(request.yardstick, others)
        candidate.prepare(self._options.reuse_distance_bytes)
        return self._undisturbed(
            lambda: time_calls(
                candidate.burst, policy, incumbent_s, fresh_bytes, candidate.unit, yardstick
            )
        )

    def _yardstick(self, known: KnownProgram | None, blobs: Sequence[bytes]) -> Yardstick | None:
        """The *known* program, which stays loaded for the next candidates.

        None if it does not run: it may be a recorded one, for which no candidate is to blame.
        """
        if known is None:
            return None
        if self._beside is None or self._beside[0] != known.digest:
            self._unload()
            try:
                built = built_from_parts(known.built, blobs)
                candidate = self._loaded.enter_context(self.task.load(built))
                candidate.check()
                candidate.prepare(self._options.reuse_distance_bytes)
            except DeviceLost:
                raise
            except AnsorpyError:
                self._unload()
                return None
            self._beside = known.digest, candidate
        candidate = self._beside[1]
        return Yardstick(candidate.burst, known.seconds, candidate.unit)

    def _unload(self) -> None:
        """Unload the program that candidates were timed beside."""
        self._beside = None
        self._loaded.close()

    def compared(self, stated_error: float) -> Comparison:
        """Compare all outputs with the reference; returns the first wrong one or else the worst."""
        dag, worst = self.task.dag, Comparison(0.0, "")
        if len(self._reference) != len(dag.outputs):
            raise CodegenError("the task has no reference yet")
        is_exact = stated_error == 0.0 and error_of(dag) == 0.0
        scales = self._least_scales()
        for n, (op, want) in enumerate(zip(dag.outputs, self._reference, strict=True)):
            found = self._compared_output(
                n, want, tolerance(dag, op) + stated_error, is_exact, scales[n]
            )
            if not found.ok:
                return found
            worst = max(worst, found, key=lambda c: c.error)
        return worst

    def _compared_output(
        self, number: int, want: Array, allowed: float, by_block: bool, least: float
    ) -> Comparison:
        """Compare an output where it is; only if that does not accept it, compare it here."""
        op = self.task.dag.outputs[number]
        flips = may_flip(self.task.dag, op)
        if not flips:
            error = self.task.accepted_error(number, want, allowed, by_block=by_block, least=least)
            if error is not None:
                return Comparison(error, "")
        got = self.task.results()[number]
        if flips:
            got = without_flips(got, want, allowed, least)
        return compare(op.name, got, want, allowed, by_block=by_block, least=least)

    def _points_comparison(self, outputs: Sequence[Array], stated_error: float = 0.0) -> Comparison:
        """Compare with the interpreter at sampled points; the first wrong output, or the worst."""
        worst = Comparison(0.0, "")
        if not self._options.check_points:
            return worst
        dag = self.task.dag
        rng = np.random.default_rng(self._options.seed)
        for op, got, least in zip(dag.outputs, outputs, self._least_scales(), strict=True):
            points = sample_points(op.shape, self._options.check_points, rng)
            allowed = tolerance(dag, op) + stated_error
            found = _at_points(dag, op, points, got, self.task.values(), least, allowed)
            if not found.ok:
                return found
            worst = max(worst, found, key=lambda c: c.error)
        return worst

    def _least_scales(self) -> list[float]:
        """For each output, the scale of errors when all values are below it."""
        dag = self.task.dag
        known = self._magnitudes or [0.0] * len(dag.outputs)
        return [least_scale(dag, op, m) for op, m in zip(dag.outputs, known, strict=True)]

    def _sampled_magnitudes(self) -> list[float]:
        """For each output, the median magnitude of the sampled elements."""
        rng = np.random.default_rng(self._options.seed)
        count = min(self._options.check_points, _MAGNITUDES)
        inputs = self.task.values()
        return [sampled_magnitude(op, count, rng, inputs) for op in self.task.dag.outputs]


def sampled_magnitude(
    op: object, count: int, rng: np.random.Generator, inputs: Mapping[str, Array]
) -> float:
    """Median :mod:`~ansorpy.ir.analysis.magnitude` of *count* random elements of *op*.

    0.0 for integers, which are exact, and for a routine, which has no formula to take it of.
    """
    assert isinstance(op, ComputeOp)
    if not op.dtype.is_float or op.routine is not None:
        return 0.0
    dag, magnitude = magnitude_of(op)
    found = evaluate_points(dag, dict(inputs), magnitude, sample_points(op.shape, count, rng))
    finite = found[np.isfinite(found)]
    return float(np.median(finite)) if finite.size else 0.0


def _at_points(
    dag: ComputeDAG,
    op: object,
    points: Ints,
    got: Array,
    inputs: Mapping[str, Array],
    least: float,
    allowed: float,
) -> Comparison:
    assert isinstance(op, ComputeOp)
    want = evaluate_points(dag, dict(inputs), op, points)
    picked, flips = np.atleast_1d(got[tuple(points.T)]), may_flip(dag, op)
    if not op.dtype.is_float and not flips:
        return _equal_at_points(op, points, picked, want)
    with np.errstate(over="ignore"):  # what the type cannot hold is infinite, or zero, in both
        want = want.astype(got.dtype).astype(np.float64)
    picked = picked.astype(np.float64)
    scale = max(least, _largest(got.astype(np.float64)), _largest(want))
    if flips:
        picked = without_flips(picked, want.astype(got.dtype), allowed, least)
        off = ~np.isclose(picked, want, rtol=0.0, atol=allowed * scale, equal_nan=True)
        if off.any():
            # Where a value is a whole number but for its rounding, float64 may find the one below.
            want[off] = evaluate_points(dag, dict(inputs), op, points[off], wide=False)
    found = compare(op.name, picked, want, math.inf)
    if not found.ok:
        return found
    difference = np.abs(np.where(np.isfinite(want), picked - want, 0.0))
    worst = int(difference.argmax())
    error = float(difference[worst]) / scale if scale else 0.0
    if error <= allowed:
        return Comparison(error, "")
    shown = (f"{values[worst]:.9g}" for values in (picked, want))
    return Comparison(error, _difference(op, points[worst], *shown))


def _equal_at_points(op: ComputeOp, points: Ints, got: Array, want: Array) -> Comparison:
    """Compare integers as they are: float64 has few of those above 2**53."""
    differs = got != want
    if not differs.any():
        return Comparison(0.0, "")
    first = int(differs.argmax())
    return Comparison(math.inf, _difference(op, points[first], got[first], want[first]))


def _difference(op: ComputeOp, point: Ints, got: object, want: object) -> str:
    at = ", ".join(map(str, point.tolist()))
    return f"{op.name}[{at}] is {got}, the interpreter's is {want}"


def _largest(values: Floats) -> float:
    """The largest absolute value of the finite ones."""
    return float(np.abs(values).max(initial=0.0, where=np.isfinite(values)))


def _timed(
    timing: Timing, error: float, request: MeasureRequest, begin: float, check_s: float
) -> Message:
    kind, reason = TrialKind.OK, ""
    if timing.is_slow and request.incumbent_s is not None:
        kind = TrialKind.SLOW
        ratio = timing.seconds[0] / request.incumbent_s
        reason = f"stopped early: {ratio:.1f} times the best so far"
    return Message(
        "measured",
        {
            "kind": kind.value,
            "reason": reason,
            "seconds": timing.seconds,
            "max_error": error,
            "run_s": time.perf_counter() - begin,
            "check_s": check_s,
        },
    )


def _failed(
    kind: TrialKind,
    reason: str,
    error: float = 0.0,
    begin: float | None = None,
    is_usable: bool = False,
) -> Message:
    spent = 0.0 if begin is None else time.perf_counter() - begin
    return Message(
        "measured",
        {
            "kind": kind.value,
            "reason": reason,
            "seconds": [],
            "max_error": error if math.isfinite(error) else None,
            "run_s": spent,
            "check_s": spent,
            "is_usable": is_usable,
        },
    )


def _or_end(handler: Handler) -> Handler:
    """Wrap *handler* so that the process ends with a message when the GPU's context is lost.

    It ends at once: what Python and libraries do at the end may wait for that GPU.
    """

    def handled(message: Message) -> Message:
        try:
            return handler(message)
        except DeviceLost as lost:
            print(lost, file=sys.stderr, flush=True)
            os._exit(1)

    return handled


def warm_up() -> None:
    """Load the compiler, the timing loop and the probe of the cores.

    Otherwise the first candidate would pay for this out of the second or so that it is allowed.
    """
    bench_address()
    team_kernel("busy")


def make_handlers() -> Mapping[str, Handler]:
    """Handlers of the run worker."""
    warm_up()
    return RunSession().handlers()
