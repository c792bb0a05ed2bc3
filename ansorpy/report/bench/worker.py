"""The process of one engine: ``python -m ansorpy.report.bench.worker``.

Requests and answers are lines of JSON.  The first request names a factory and its arguments, and
is answered once the engine is loaded and has run; each later one requests a burst.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from importlib import import_module
from time import perf_counter_ns
from typing import Any, BinaryIO

from ansorpy.errors import AnsorpyError
from ansorpy.report.engines.protocol import Engine

__all__ = ["burst", "main"]

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve requests from stdin until it closes."""
    _die_with_parent()
    answers = _private_stdout()
    engine: Engine | None = None
    for line in sys.stdin.buffer:
        request = json.loads(line)
        try:
            if engine is None:
                engine = _load(request)
                answer: dict[str, Any] = {"version": engine.version}
            else:
                answer = {"calls_ns": burst(engine, **request)}
        except Exception as error:  # any error is reported to the parent
            _send(answers, _described(error))
            return
        _send(answers, answer)


def burst(
    engine: Engine, *, untimed_s: float, burst_s: float, least_calls: int, most_calls: int
) -> list[int]:
    """Make untimed calls for *untimed_s*, then timed ones for *burst_s*; nanoseconds of each."""
    start = perf_counter_ns()
    untimed = 0
    while untimed == 0 or perf_counter_ns() - start < untimed_s * 1e9:
        engine.run()
        untimed += 1
    calls: list[int] = []
    first = before = perf_counter_ns()
    while len(calls) < most_calls:
        engine.run()
        after = perf_counter_ns()
        calls.append(after - before)
        if len(calls) >= least_calls and after - first >= burst_s * 1e9:
            break
        before = perf_counter_ns()
    return calls


def _load(request: dict[str, Any]) -> Engine:
    module, attribute = request["factory"].split(":")
    engine: Engine = getattr(import_module(module), attribute)(**request["arguments"])
    engine.run()
    return engine


def _described(error: Exception) -> dict[str, Any]:
    if isinstance(error, AnsorpyError):
        return {"error": error.message, "hint": error.hint, "exit_code": error.exit_code}
    return {"error": f"{type(error).__name__}: {error}", "hint": None, "exit_code": 1}


def _die_with_parent() -> None:
    """Have the kernel kill this process with its parent, which it would outlive if stopped."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    except (OSError, AttributeError):
        return  # not Linux: the parent's own clean-up must suffice


def _private_stdout() -> BinaryIO:
    """Return a copy of stdout for the answers; what engines print goes to stderr."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _send(answers: BinaryIO, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer).encode() + b"\n")
    answers.flush()


if __name__ == "__main__":
    main()
