"""Handlers in an engine's process, which load the engine once and time bursts of calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from math import inf
from pkgutil import resolve_name
from threading import Barrier
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from ansorpy.errors import AnsorpyError
from ansorpy.measure.workers.protocol import Message
from ansorpy.measure.workers.worker import Handler

if TYPE_CHECKING:  # it loads the importer, which not all engines need
    from ansorpy.evaluation.engines.protocol import Engine

__all__ = ["burst", "bursts", "make_handlers", "opened", "reporting"]


def make_handlers() -> Mapping[str, Handler]:
    """The handlers ``load``, which returns the engine's version and precision, and ``burst``.

    ``load`` opens the engine once for each of the concurrent callers.  ``burst`` returns the
    nanoseconds of each timed call; where it names a size, the engine has several.  An error is
    returned as ``failed``, with its message, its hint, and the exit code of its kind.
    """
    loaded: list[Any] = []

    def load(request: Message) -> Message:
        fields: Mapping[str, Any] = request.fields
        for _ in range(fields["streams"]):
            engine = opened(request)
            engine.run()
            loaded.append(engine)
        return Message("loaded", {"version": engine.version, "precision": engine.precision})

    def timed(request: Message) -> Message:
        fields: dict[str, Any] = dict(request.fields)
        size = fields.pop("size")
        for engine in loaded if size is not None else ():
            engine.choose(size)
        calls_ns = bursts(loaded, **fields)
        return Message("timed", {"calls_ns": [*chain(*calls_ns)]})

    return {"load": reporting(load), "burst": reporting(timed)}


def opened(request: Message) -> Any:
    """What the factory of *request* ("module:callable") makes of its arguments."""
    fields: Mapping[str, Any] = request.fields
    return resolve_name(fields["factory"])(**fields["arguments"])


def bursts(engines: Sequence[Engine], **options: Any) -> list[list[int]]:
    """:func:`burst` of each of *engines*, of all at the same time, each in a thread of its own."""
    if len(engines) == 1:
        return [burst(engines[0], **options)]
    ready = Barrier(len(engines))
    with ThreadPoolExecutor(len(engines)) as callers:
        return [*callers.map(lambda engine: burst(engine, **options, begin=ready.wait), engines)]


def burst(
    engine: Engine, *, untimed_s: float, burst_s: float, least_calls: int, most_calls: int,
    long_s: float = inf, begin: Callable[[], object] = lambda: None,
) -> list[int]:  # fmt: skip
    """Call *engine* untimed for *untimed_s*, then timed for *burst_s*; nanoseconds of each call.

    *begin* is called in between.  The first timed call of *long_s* seconds or more is the last.
    """
    start = perf_counter_ns()
    untimed = 0
    while untimed == 0 or perf_counter_ns() - start < untimed_s * 1e9:
        engine.run()
        untimed += 1
    calls: list[int] = []
    begin()
    first = before = perf_counter_ns()
    while len(calls) < most_calls:
        engine.run()
        after = perf_counter_ns()
        calls.append(after - before)
        is_whole = len(calls) >= least_calls and after - first >= burst_s * 1e9
        if is_whole or calls[-1] >= long_s * 1e9:
            break
        before = perf_counter_ns()
    return calls


def reporting(handler: Callable[[Message], Message]) -> Handler:
    """*handler*, whose errors become answers of kind ``failed``."""

    def answer(request: Message) -> Message:
        try:
            return handler(request)
        except AnsorpyError as error:
            fields = {"message": error.message, "hint": error.hint, "exit_code": error.exit_code}
        except Exception as error:  # any error of an engine is reported to the parent
            message = f"{type(error).__name__}: {error}"
            fields = {"message": message, "hint": None, "exit_code": 1}
        return Message("failed", fields)

    return answer
