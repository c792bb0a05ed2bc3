"""A worker's side: it answers messages from one descriptor on another until the first ends.

A worker is a fork of the fork server (:mod:`ansorpy.measure.workers.fork_server`).  The handlers
are those that ``make_handlers()`` of its module returns.  It never imports the user's ``__main__``.
"""

from __future__ import annotations

import importlib
import os
import traceback
from collections.abc import Callable, Mapping

from ansorpy.errors import AnsorpyError
from ansorpy.measure.workers.protocol import Decoder, Message, encode

__all__ = ["Handler", "main"]

Handler = Callable[[Message], Message]
_READ_BYTES = 1 << 20


def main(module: str, requests: int, answers: int) -> int:
    """Answer what is read from *requests* on *answers*, one message at a time, until its end.

    Returns the exit status of the process.
    """
    decoder = Decoder()
    handlers: Mapping[str, Handler] = importlib.import_module(module).make_handlers()
    _write(answers, Message("ready", {"pid": os.getpid()}))
    while True:
        message = decoder.take()
        if message is not None:
            _write(answers, _answer(handlers, message))
            continue
        data = os.read(requests, _READ_BYTES)
        if not data:
            return 0
        decoder.feed(data)


def _answer(handlers: Mapping[str, Handler], message: Message) -> Message:
    try:
        return handlers[message.kind](message)
    except AnsorpyError as error:
        return Message("error", {"type": type(error).__name__, "text": str(error)})
    except Exception as error:
        # Any error that a candidate causes is its result and never ends the run.
        text = "".join(traceback.format_exception(error, limit=-8))
        return Message("error", {"type": type(error).__name__, "text": text.strip()})


def _write(descriptor: int, message: Message) -> None:
    view = memoryview(encode(message))
    while view:
        view = view[os.write(descriptor, view) :]
