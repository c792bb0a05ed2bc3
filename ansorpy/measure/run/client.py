"""The driver's side of the run worker: tracks its open task and interprets its answers."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from cachetools import LRUCache
from pydantic import ValidationError

from ansorpy.deadline import OutOfTime, left_s
from ansorpy.errors import AnsorpyError, VerificationFailed
from ansorpy.ir.task import Task
from ansorpy.ir.text.serialize import dag_to_json
from ansorpy.measure.build.built import Built
from ansorpy.measure.result import MeasureResult, TrialKind, out_of_time
from ansorpy.measure.run.limits import STARVED, run_limit_s
from ansorpy.measure.run.timing import TimingPolicy
from ansorpy.measure.run.undisturbed import CREDIT_S
from ansorpy.measure.workers.messages import (
    KnownProgram,
    Measured,
    MeasureRequest,
    OpenRequest,
    ReferenceMade,
    Retimed,
    RetimeRequest,
)
from ansorpy.measure.workers.protocol import Message
from ansorpy.measure.workers.supervisor import Failure, Reply, Worker
from ansorpy.profiler import Activity, charge, profiled

__all__ = ["ReferenceOutputs", "RunClient"]

_LOG = logging.getLogger(__name__)

Magnitudes = tuple[float, ...]

_FAILURES = {"timeout": TrialKind.TIMEOUT, "crash": TrialKind.CRASH}
_GUARDED = (
    "the usual cause is an access outside its buffers, which end at guard pages in the first run"
)
_KEPT_REFERENCE_BYTES = 512 << 20
_YARDSTICKS = 256
_LONGEST_YARDSTICK_S = 0.05
"""A call of a longer program goes through fast and slow phases of the machine itself."""
_ROUNDS_SHARE = 0.9
"""Fraction of a limit after which the worker begins no further round, so as to answer in time."""


@dataclass(frozen=True)
class ReferenceOutputs:
    """A task's outputs, which every candidate must reproduce, and their magnitudes if known."""

    outputs: tuple[bytes, ...]
    magnitudes: Magnitudes = ()


class RunClient:
    """One run worker, pinned to *cores* if given, that reopens its task after each restart.

    Args:
        module: Module with the worker's handlers, which select the device.
        environment: Variables added to the driver's.
        patience: Factor by which a candidate may take longer while others occupy the cores.
        spare: Keep a second process ready, which takes over when the first one ends.
        in_turns: Time candidates in turns with another program of their task
            (:class:`~ansorpy.measure.run.timing.Yardstick`).
    """

    def __init__(
        self,
        cores: tuple[int, ...] | None,
        *,
        seed: int,
        policy: TimingPolicy,
        check_points: int,
        run_timeout_s: float,
        reference_timeout_s: float,
        module: str = "ansorpy.measure.run.handlers",
        environment: Mapping[str, str] | None = None,
        patience: float = STARVED,
        spare: bool = False,
        in_turns: bool = False,
    ) -> None:
        self.cores = cores
        self.seed = seed
        self.policy = policy
        self.check_points = check_points
        self.run_timeout_s = run_timeout_s
        self.reference_timeout_s = reference_timeout_s
        self.worker = Worker(module, cores=cores, environment=environment)
        self._spare = Worker(module, cores=cores, environment=environment) if spare else None
        self.patience = patience
        self._open: tuple[Worker, int, str] | None = None
        self._references: dict[str, ReferenceOutputs] = {}
        self._verified: dict[str, Magnitudes] = {}
        self._in_turns = in_turns
        self._yardsticks = LRUCache[str, tuple[Built, float]](_YARDSTICKS)

    @property
    def workers(self) -> list[Worker]:
        """The worker, and the spare one if there is one."""
        return [self.worker] if self._spare is None else [self.worker, self._spare]

    def close(self) -> None:
        """End the worker and its spare."""
        for worker in self.workers:
            worker.close()

    def has_reference(self, task: Task) -> bool:
        """Return whether the reference outputs of *task* are known here."""
        return _identity(task) in self._references

    def make_reference(self, task: Task, built: Built) -> None:
        """Run the reference and keep its outputs, which every candidate must reproduce.

        The first time, the outputs are checked against the interpreter at sampled points.

        Raises:
            VerificationFailed: The outputs are wrong, or there are none.
            OutOfTime: The deadline passed first.
        """
        identity = _identity(task)
        points = 0 if identity in self._verified else self.check_points
        header, blobs = built.parts()
        failure = self._open_task(task, ReferenceOutputs(()), points)
        answer = failure or self.worker.request(
            Message("reference", header, blobs), self.reference_timeout_s
        )
        self._open = None
        if _is_cut(answer):
            raise OutOfTime
        made = None if isinstance(answer, Failure) else _reference(answer, task)
        if made is None:
            raise VerificationFailed(
                f"the reference of {task.name or task.key} cannot be made, so no "
                f"candidate can be checked: {_reason(answer)}"
            )
        magnitudes = self._verified.setdefault(identity, made.magnitudes)
        self.take_reference(task, replace(made, magnitudes=magnitudes))

    def reference(self, task: Task) -> ReferenceOutputs:
        """The reference of *task*, which must be known."""
        return self._references[_identity(task)]

    def take_reference(self, task: Task, reference: ReferenceOutputs) -> None:
        """Use *reference*, which was made and checked elsewhere, for *task*."""
        identity = _identity(task)
        self._references[identity] = reference
        self._forget_old(identity)

    def measure(
        self, task: Task, built: Built, incumbent_s: float | None, stated_error: float = 0.0
    ) -> MeasureResult:
        """Check and time one candidate; its definition may add *stated_error* to the tolerance.

        The result is CUT when the deadline passes before the answer.  A candidate whose worker the
        system killed is run once more.

        Raises:
            AnsorpyError: The worker cannot open the task, which is not the candidate's fault.
        """
        message = self._measure_request(task, built, incumbent_s, stated_error)
        timeout_s = run_limit_s(task, self.run_timeout_s, incumbent_s) + CREDIT_S
        for _ in range(2):
            try:
                with profiled(Activity.CHECK):
                    self._ensure_open(task)
            except OutOfTime:
                return out_of_time()
            answer = self.worker.request(message, timeout_s, starved_s=self.patience * timeout_s)
            if not (isinstance(answer, Failure) and answer.was_killed):
                break
        result, check_s = _measured(answer)
        charge(Activity.CHECK, check_s)
        self._distrust([result], answer)
        if result.ok and self._in_turns:
            self._note_time(task, built, result.median_s)
        return result

    def _measure_request(
        self, task: Task, built: Built, incumbent_s: float | None, stated_error: float
    ) -> Message:
        header, blobs = built.parts()
        policy, yardstick, others = self.policy, None, tuple[bytes, ...]()
        known = self._yardsticks.get(_identity(task))
        if known is not None:
            program, seconds = known
            known_header, others = program.parts()
            yardstick = KnownProgram(digest=program.digest, built=known_header, seconds=seconds)
        elif self._in_turns:
            policy = policy.of_level()
        request = MeasureRequest(
            built=header, blobs=len(blobs), stated_error=stated_error, incumbent_s=incumbent_s,
            policy=policy, yardstick=yardstick,
        )  # fmt: skip
        return Message("measure", request.model_dump(mode="json"), (*blobs, *others))

    def compare_with(self, task: Task, known: Callable[[], tuple[Built, float] | None]) -> None:
        """Unless *task* has a yardstick, use the program of *known*, with its seconds."""
        if self._in_turns and _identity(task) not in self._yardsticks:
            found = known()
            if found is not None:
                self._note_time(task, *found)

    def _note_time(self, task: Task, built: Built, seconds: float) -> None:
        """Time others of *task* beside *built* if there is no yardstick, or a much slower one."""
        _, known_s = self._yardsticks.get(_identity(task), (None, math.inf))
        if seconds < min(known_s / 2, _LONGEST_YARDSTICK_S):
            self._yardsticks[_identity(task)] = built, seconds

    def retime(self, task: Task, builds: list[Built]) -> list[MeasureResult]:
        """Time several candidates in turns; if one fails, all fail.

        There are fewer rounds if the candidates take long or the deadline is near.

        Raises:
            AnsorpyError: The worker cannot open the task.
        """
        try:
            self._ensure_open(task)
        except OutOfTime:
            return [out_of_time()] * len(builds)
        parts = [built.parts() for built in builds]
        # Three rounds call each candidate no more often than measuring it did.
        timeout_s = run_limit_s(task, self.run_timeout_s, None) * len(builds) + CREDIT_S
        request = RetimeRequest(
            built=[header for header, _ in parts],
            blobs=[len(blobs) for _, blobs in parts],
            within_s=_ROUNDS_SHARE * min(timeout_s, left_s()),
            policy=self.policy,
        )
        blobs = tuple(blob for _, blobs in parts for blob in blobs)
        message = Message("retime", request.model_dump(mode="json"), blobs)
        answer = self.worker.request(message, timeout_s)
        results = _retimed(answer, builds)
        self._distrust(results, answer)
        return results

    def _distrust(self, results: Sequence[MeasureResult], answer: Reply) -> None:
        """End the worker if a candidate may have written outside its buffers.

        The next candidate then gets clean memory.  A worker whose memory candidates cannot reach,
        as that of a GPU's worker, says in its *answer* that it is usable.
        """
        is_usable = isinstance(answer, Message) and answer.fields.get("is_usable") is True
        if not is_usable and any(result.kind is TrialKind.RUN_ERROR for result in results):
            self.worker.kill()

    def start(self) -> None:
        """Start the worker, and a spare one, unless they run; returns before they are ready."""
        for worker in self.workers:
            worker.start()

    def await_spare(self) -> None:
        """Wait until the spare worker, if there is to be one, is ready and disturbs no timing."""
        if self._spare is None:
            return
        try:
            self._spare.make_ready()
        except AnsorpyError as error:
            _LOG.warning("no spare worker will take over if one loses its GPU: %s", error)
            self._spare.close()
            self._spare = None

    def _replace_dead(self) -> None:
        """Let the spare worker, if there is one, take over from a dead worker."""
        if not self.worker.is_alive and self._spare is not None and self._spare.is_alive:
            self.worker, self._spare = self._spare, self.worker

    def _ensure_open(self, task: Task) -> None:
        """Open *task* with its reference, unless this worker process already has it open.

        If that fails, the worker is restarted once: the machine may have been at fault.

        Raises:
            AnsorpyError: It failed again.
            OutOfTime: The deadline passed first.
        """
        self._replace_dead()
        if self.worker.is_alive and self._open == self._opening(task):
            return
        reason = ""
        for _ in range(2):
            if left_s() <= 0:
                raise OutOfTime
            failure = self._open_task(task, self._references[_identity(task)], 0)
            if failure is None:
                return
            if _is_cut(failure):
                raise OutOfTime
            self.worker.kill()
            reason = failure.reason
        raise AnsorpyError(
            f"the run worker cannot prepare {task.name or task.key}: {reason}",
            hint="check that memory suffices for its operands and two copies of its results",
        )

    def _open_task(self, task: Task, reference: ReferenceOutputs, points: int) -> Failure | None:
        request = OpenRequest(
            seed=self.seed,
            threads=task.threads,
            reuse_distance_bytes=task.reuse_distance_bytes,
            check_points=points,
            magnitudes=reference.magnitudes,
        )
        definition = dag_to_json(task.dag).encode()
        message = Message("open", request.model_dump(mode="json"), (definition, *reference.outputs))
        answer = self.worker.request(message, self.reference_timeout_s)
        if isinstance(answer, Failure):
            return answer
        if answer.kind != "opened":
            return Failure("crash", _reason(answer))
        self._open = self._opening(task)
        return None

    def _opening(self, task: Task) -> tuple[Worker, int, str]:
        """*task* as opened by the process that runs now."""
        return self.worker, self.worker.generation, _identity(task)

    def _forget_old(self, keep: str) -> None:
        """Drop references of other tasks, oldest first, until they fit in the memory limit."""
        sizes = {key: sum(map(len, kept.outputs)) for key, kept in self._references.items()}
        for key in list(self._references):
            if key != keep and sum(sizes.values()) > _KEPT_REFERENCE_BYTES:
                del self._references[key], sizes[key]


@lru_cache(maxsize=1024)
def _identity(task: Task) -> str:
    """Key of a task plus its definition with names, because inputs are drawn and passed by name.

    It does not matter whether its programs are for other sizes, too.
    """
    return f"{task.static.key} {dag_to_json(task.dag)}"


def _reason(answer: Reply) -> str:
    if isinstance(answer, Failure):
        return answer.reason
    return str(answer.fields.get("reason") or answer.fields.get("text") or answer.kind)


def _is_cut(answer: Reply) -> bool:
    """Whether the deadline, rather than the request's own limit, ended the wait for *answer*."""
    return isinstance(answer, Failure) and answer.kind == "timeout" and left_s() <= 0


def _failed(failure: Failure) -> MeasureResult:
    if _is_cut(failure):
        return out_of_time()
    reason = f"while running: {failure.reason}"
    if "SIGSEGV" in reason or "SIGBUS" in reason:
        reason = f"{reason}\n{_GUARDED}"
    return MeasureResult(_FAILURES[failure.kind], reason=reason)


def _reference(answer: Message, task: Task) -> ReferenceOutputs | None:
    """Read the outputs of *task* from *answer*; None if it does not contain them."""
    sizes = [op.bytes for op in task.dag.outputs]
    if answer.kind != "reference" or sizes != [len(blob) for blob in answer.blobs]:
        return None
    try:
        magnitudes = ReferenceMade.model_validate(answer.fields).magnitudes
    except ValidationError:
        return None
    return (
        ReferenceOutputs(answer.blobs, magnitudes) if len(magnitudes) in (0, len(sizes)) else None
    )


def _measured(answer: Reply) -> tuple[MeasureResult, float]:
    """Read an answer to ``measure``: the result, and the part of its seconds spent on checking."""
    if isinstance(answer, Failure):
        return _failed(answer), 0.0
    if answer.kind == "error":
        return MeasureResult(TrialKind.RUN_ERROR, reason=_reason(answer)), 0.0
    try:
        read = Measured.model_validate(answer.fields)
    except ValidationError as error:
        return _junk(error), 0.0
    result = MeasureResult(
        kind=read.kind,
        seconds=read.seconds,
        reason=read.reason,
        run_s=read.run_s,
        max_error=math.inf if read.max_error is None else read.max_error,
    )
    return result, read.check_s


def _retimed(answer: Reply, builds: Sequence[Built]) -> list[MeasureResult]:
    """Read an answer to ``retime``: one result for each of *builds*."""
    if isinstance(answer, Failure):
        return [_failed(answer)] * len(builds)
    if answer.kind == "error":
        return [MeasureResult(TrialKind.RUN_ERROR, reason=_reason(answer))] * len(builds)
    try:
        seconds = Retimed.model_validate(answer.fields).seconds
        return [
            MeasureResult(TrialKind.OK, taken, object_digest=built.digest)
            for taken, built in zip(seconds, builds, strict=True)
        ]
    except ValueError as error:
        return [_junk(error)] * len(builds)


def _junk(error: ValueError) -> MeasureResult:
    return MeasureResult(TrialKind.CRASH, reason=f"the run worker answered junk: {error}")
