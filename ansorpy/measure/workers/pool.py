"""Process many requests on several workers at once, each request with its own deadline."""

from __future__ import annotations

import selectors
import time
from collections import deque
from collections.abc import Iterator, Sequence

from ansorpy.deadline import left_s
from ansorpy.measure.workers.protocol import Message
from ansorpy.measure.workers.supervisor import Failure, Reply, Worker

__all__ = ["ask_all"]


def ask_all(
    workers: Sequence[Worker], messages: Sequence[Message], timeout_s: float
) -> Iterator[tuple[int, Reply]]:
    """Yield ``(index, reply)`` of each message as it is answered, in no fixed order.

    A worker that hangs or dies loses only its current message and is restarted for the next.  One
    that the system killed is asked again, once.
    Past the deadline no more messages are sent, and pending ones count as timed out.
    """
    waiting = deque(enumerate(messages))
    repeated: set[int] = set()
    busy: dict[Worker, tuple[int, float]] = {}
    used = workers[: len(messages)]
    for worker in used:
        # Start all before waiting for any, so that their imports run in parallel.
        worker.start()
    try:
        found: list[tuple[int, Reply]] = []
        while waiting or busy or found:
            for worker in used:
                if worker not in busy:
                    found += _give(worker, waiting, busy, timeout_s)
            yield from found  # while the caller deals with these, all workers are busy
            found = []
            for index, reply in _collect(busy, timeout_s):
                if isinstance(reply, Failure) and reply.was_killed and index not in repeated:
                    repeated.add(index)
                    waiting.append((index, messages[index]))
                else:
                    found.append((index, reply))
    finally:
        # If the caller stopped early, late answers must not be taken for answers to later messages.
        for worker in busy:
            worker.kill()


def _give(
    worker: Worker,
    waiting: deque[tuple[int, Message]],
    busy: dict[Worker, tuple[int, float]],
    timeout_s: float,
) -> Iterator[tuple[int, Reply]]:
    """Send *worker* the next message it accepts; yields messages that could not be delivered."""
    while waiting:
        index, message = waiting.popleft()
        failure = worker.make_ready()
        if failure is None:
            deadline = time.monotonic() + min(timeout_s, left_s())
            busy[worker] = (index, deadline)
            failure = worker.send(message, deadline)
            if failure is None:
                return
            del busy[worker]
        yield index, failure


def _collect(busy: dict[Worker, tuple[int, float]], timeout_s: float) -> list[tuple[int, Reply]]:
    """Wait until a worker answers or the first deadline passes; frees workers that are done."""
    found: list[tuple[int, Reply]] = []
    if not busy:
        return found
    with selectors.DefaultSelector() as selector:
        for worker in busy:
            selector.register(worker, selectors.EVENT_READ)
        first = min(deadline for _, deadline in busy.values())
        readable = selector.select(max(0.0, first - time.monotonic()))
        ready = {key.fileobj for key, _ in readable}
    for worker, (index, deadline) in list(busy.items()):
        # If this process was suspended (Ctrl-Z), the wait ends without a look at the answers.
        is_late = time.monotonic() >= deadline
        reply = worker.receive(0.0) if worker in ready or is_late else None
        if reply is None and is_late:
            reply = worker.fail_timeout(timeout_s)
        if reply is not None:
            del busy[worker]
            found.append((index, reply))
    return found
