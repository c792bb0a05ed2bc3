"""Engines that are compared in the test's own process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

import pytest

from ansorpy.evaluation.bench import processes
from ansorpy.measure.workers.protocol import Decoder, Message, encode
from ansorpy.measure.workers.worker import Handler


class _WorkerHere:
    """In place of a worker process: its handlers, which get what would be sent to them."""

    def __init__(self, module: str) -> None:
        make: Callable[[], Mapping[str, Handler]] = import_module(module).make_handlers
        self._handlers = make()

    def request(self, message: Message, timeout_s: float) -> Message:
        assert timeout_s > 0
        return _sent(self._handlers[message.kind](_sent(message)))

    def resume(self) -> None:
        """It runs when it is asked."""

    stop = close = resume


def _sent(message: Message) -> Message:
    """What the other side of a pipe makes of *message*."""
    decoder = Decoder()
    decoder.feed(encode(message))
    received = decoder.take()
    assert received is not None
    return received


@pytest.fixture
def engines_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """``bench`` loads its engines here, for tests of what it compares and not of how."""
    monkeypatch.setattr(processes, "Worker", _WorkerHere)
