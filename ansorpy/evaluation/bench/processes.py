"""The process of one engine in a comparison: loaded once, stopped while others take their turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ansorpy.evaluation.bench.handlers
from ansorpy.errors import (
    AnsorpyError,
    ForeignFile,
    MissingDependency,
    UnsupportedModel,
    UsageError,
)
from ansorpy.measure.workers.protocol import Message
from ansorpy.measure.workers.supervisor import Failure, Worker

__all__ = ["Contender", "EngineFailure", "EngineProcess"]


class EngineFailure(AnsorpyError):
    """An engine's process ended, hung or reported an error; the message has its last output."""


_KINDS: dict[int, type[AnsorpyError]] = {
    kind.exit_code: kind
    for kind in (EngineFailure, UsageError, UnsupportedModel, MissingDependency, ForeignFile)
}


@dataclass(frozen=True)
class Contender:
    """An engine: ``factory`` ("module:callable") is called with ``arguments`` in its process."""

    name: str
    factory: str
    arguments: Mapping[str, Any]


class EngineProcess:
    """The worker process of one engine, with the handlers of a module; ends with its context.

    It is stopped (SIGSTOP) except while it loads the engine or works on a request.  ``precision``
    is what the engine says about its arithmetic; empty if it says nothing.
    """

    def __init__(
        self, contender: Contender, handlers: str = ansorpy.evaluation.bench.handlers.__name__
    ) -> None:
        self.name, self.precision = contender.name, ""
        self._contender = contender
        self._worker = Worker(handlers)

    def __enter__(self) -> EngineProcess:
        return self

    def __exit__(self, *exception: object) -> None:
        self._worker.close()

    def load(self, timeout_s: float, streams: int = 1) -> str:
        """Load the engine, once for each of the *streams*; return its version."""
        contender = self._contender
        request = {"factory": contender.factory, "arguments": dict(contender.arguments)}
        answer = self.ask("load", request | {"streams": streams}, timeout_s)
        self.precision = str(answer.get("precision", ""))
        return str(answer["version"])

    def ask(self, kind: str, fields: Mapping[str, Any], timeout_s: float) -> Mapping[str, Any]:
        """Resume the process for one request, then stop it; return what it answers.

        Raises:
            EngineFailure: It died or hung; other errors are those that it reported.
        """
        self._worker.resume()
        answer = self._worker.request(Message(kind, dict(fields)), timeout_s)
        if isinstance(answer, Failure):
            raise EngineFailure(f"the process of {self.name} failed: {answer.reason}")
        self._worker.stop()
        found: Mapping[str, Any] = answer.fields
        if answer.kind == "failed":
            error = _KINDS.get(found["exit_code"], EngineFailure)
            raise error(f"{self.name}: {found['message']}", hint=found["hint"])
        return found
