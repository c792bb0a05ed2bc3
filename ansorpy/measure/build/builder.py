"""Build many candidates at once, in worker processes that may crash or hang."""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from cachetools import LRUCache
from pydantic import ValidationError

from ansorpy.config import DUMP
from ansorpy.deadline import OutOfTime, left_s
from ansorpy.errors import ForeignFile
from ansorpy.ir.task import Task
from ansorpy.measure.build.built import Built, built_from_parts
from ansorpy.measure.result import MeasureResult, TrialKind, out_of_time
from ansorpy.measure.workers.locks import lock_cores
from ansorpy.measure.workers.messages import BuildFailed, BuildRequest
from ansorpy.measure.workers.pool import ask_all
from ansorpy.measure.workers.processes import usable_cores
from ansorpy.measure.workers.protocol import Message, encode
from ansorpy.measure.workers.supervisor import Failure, Reply, Worker
from ansorpy.schedule.serialize import states_to_json
from ansorpy.schedule.state import State
from ansorpy.writable import demand_writable

__all__ = ["BUILD_MEMORY_BYTES", "Builder", "build_requests", "task_symbol"]

BUILD_MEMORY_BYTES = 4 << 30
"""Memory limit of one build worker (measured use: 0.13 GiB for 96 builds of a 3x3 convolution)."""

_FAILURES = {"timeout": TrialKind.BUILD_TIMEOUT, "crash": TrialKind.CRASH}


def task_symbol(task: Task) -> str:
    """Name of *task*'s function in object code; it differs between the tasks of a network.

    Programs for all sizes have one name at all of them, so that each is built once.
    """
    key = "/".join(name for name, _ in task.at) or task.key
    return f"ansorpy_{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def _demand_dump_folder() -> None:
    folder = DUMP.get()
    if folder is not None:
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        demand_writable(folder / "program.txt")


_KEPT_TIMES = 4096
"""That nobody has asked for."""

BuildTime: TypeAlias = tuple[float, float]
"""Readings of ``time.perf_counter`` at the start and the end of a build."""


class Builder:
    """A pool of build workers, started when first needed unless :meth:`start` was called.

    Recent builds are cached by the content of their requests, so that finalists and the default
    schedule are not built again.

    Args:
        workers: Number of parallel build workers.
        timeout_s: Seconds one candidate may take (TVM: 15).
        memory_bytes: Memory each worker may take.
        module: Module with the workers' handlers.
        kept: Number of built candidates cached.
        lock_folder: Folder of the machine-wide core locks: building waits while others time.

    Raises:
        UsageError: The folder ``ANSORPY_DUMP`` cannot be written.
    """

    def __init__(
        self,
        workers: int,
        *,
        timeout_s: float = 15.0,
        memory_bytes: int = BUILD_MEMORY_BYTES,
        module: str = "ansorpy.measure.build.handlers",
        kept: int = 256,
        lock_folder: Path | None = None,
    ) -> None:
        _demand_dump_folder()
        self.timeout_s = timeout_s
        self.lock_folder = lock_folder
        self._built = LRUCache[bytes, Built](kept)
        self._ended: deque[BuildTime] = deque(maxlen=_KEPT_TIMES)
        self.workers = [Worker(module, memory_bytes=memory_bytes) for _ in range(workers)]

    def start(self) -> None:
        """Start all workers side by side; returns before their imports are done."""
        for worker in self.workers:
            worker.start()

    def build(self, task: Task, states: Sequence[State]) -> list[Built | MeasureResult]:
        """Build each of *states*, in order: object code, or the result that explains a failure.

        A program for all sizes is returned as it is run at those of *task*.
        """
        found = dict(self.build_each(task, states))
        return [found[n] for n in range(len(states))]

    def build_each(
        self, task: Task, states: Sequence[State]
    ) -> Iterator[tuple[int, Built | MeasureResult]]:
        """As :meth:`build`, but each result follows as soon as it is there, with its number."""
        messages = build_requests(task, states)
        keys = [_key(message) for message in messages]
        numbers: dict[bytes, list[int]] = {}
        for n, key in enumerate(keys):
            numbers.setdefault(key, []).append(n)
        sizes = dict(task.at)
        found: dict[bytes, Built | MeasureResult] = {}
        for key, built in self._answers({k: messages[n[0]] for k, n in numbers.items()}):
            found[key] = built
            yield from ((n, _at(built, sizes)) for n in numbers[key])
        for n, key in enumerate(keys):
            if key not in found:
                yield n, out_of_time()
            # Failures are not cached: they may have been the machine's fault.
            elif isinstance(built := found[key], Built):
                self._built[key] = built

    def _answers(
        self, messages: Mapping[bytes, Message]
    ) -> Iterator[tuple[bytes, Built | MeasureResult]]:
        """The results of *messages*, by their keys, until the deadline; first what is cached."""
        kept = {key: built for key in messages if (built := self._built.get(key)) is not None}
        yield from kept.items()
        order = [key for key in messages if key not in kept]
        if not order:
            return
        wanted = [messages[key] for key in order]
        with (
            suppress(OutOfTime),
            lock_cores(usable_cores(), self.lock_folder, shared=True),
        ):
            for index, outcome in ask_all(self.workers, wanted, self.timeout_s):
                answer = _interpreted(outcome)
                if isinstance(answer, Built):
                    now = time.perf_counter()
                    self._ended.append((now - answer.build_s, now))
                yield order[index], answer

    def remember(self, task: Task, state: State, built: Built) -> None:
        """Cache *built*, made elsewhere, as the result of building *state*.

        A program for all sizes is not cached if its sizes are chosen already.
        """
        [message] = build_requests(task, [state])
        if not built.sizes:
            self._built[_key(message)] = built

    def take_times(self) -> list[BuildTime]:
        """When each build since the last call began and ended, in the order of their ends."""
        return [self._ended.popleft() for _ in range(len(self._ended))]

    def close(self) -> None:
        """End the workers."""
        for worker in self.workers:
            worker.close()


def build_requests(task: Task, states: Sequence[State]) -> list[Message]:
    """The requests that have a build worker compile each of *states*."""
    request = BuildRequest(
        target=task.target, symbol=task_symbol(task), prefetch=task.reuse_distance_bytes > 0
    )
    fields = request.model_dump(mode="json")
    return [
        Message("build", fields, (definition.encode(), steps.encode()))
        for definition, steps in states_to_json(states)
    ]


def _at(built: Built | MeasureResult, sizes: Mapping[str, int]) -> Built | MeasureResult:
    """*built*, if it is a program for all sizes, to be run with *sizes*, which go by name."""
    if isinstance(built, MeasureResult) or not built.dims:
        return built
    return built.at({dim: sizes[dim.name] for dim in built.dims})


def _key(message: Message) -> bytes:
    return hashlib.sha256(encode(message)).digest()


def _interpreted(reply: Reply) -> Built | MeasureResult:
    if isinstance(reply, Failure) and reply.kind == "timeout" and left_s() <= 0:
        return out_of_time()
    if isinstance(reply, Failure):
        return MeasureResult(_FAILURES[reply.kind], reason=f"while building: {reply.reason}")
    if reply.kind == "error":
        return MeasureResult(TrialKind.BUILD_ERROR, reason=str(reply.fields.get("text")))
    try:
        if reply.kind == "failed":
            failed = BuildFailed.model_validate(reply.fields)
            return MeasureResult(failed.kind, reason=failed.reason)
        return built_from_parts(reply.fields, reply.blobs)
    except (ForeignFile, ValidationError) as error:
        return MeasureResult(TrialKind.BUILD_ERROR, reason=f"the build worker answered {error}")
