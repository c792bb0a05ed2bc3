"""The worker process: ``python -m ansorpy.measure.workers.worker IN OUT PARENT MODULE``.

It answers messages from descriptor IN on descriptor OUT with the handlers that MODULE's
``make_handlers()`` returns, one at a time, until IN ends.  Told to rest, it drops them; if nobody
wakes it within :data:`REST_S` it ends.  It never imports the user's ``__main__``, and does not
outlive PARENT: the kernel kills it when the driver's end of a pipe closes
(:mod:`ansorpy.measure.workers.started`) and, as requested here, when its parent dies.  The latter
works even if a program forked from the driver keeps that pipe open.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import resource
import select
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress

from ansorpy.errors import AnsorpyError
from ansorpy.measure.workers.protocol import Decoder, Message, encode

__all__ = ["REST", "REST_S", "WAKE", "Handler", "main", "serve"]

Handler = Callable[[Message], Message]

_PR_SET_PDEATHSIG = 1
_READ_BYTES = 1 << 20
REST, WAKE = "rest", "wake"
"""Messages that every worker understands: forget all work; say whether you are ready."""
REST_S = 60.0


def main(argv: list[str]) -> int:
    """Serve until the driver closes its end; returns the exit status."""
    requests, answers, parent = (int(text) for text in argv[:3])
    _isolate(parent)
    os.set_inheritable(requests, False)
    os.set_inheritable(answers, False)
    serve(requests, answers, importlib.import_module(argv[3]).make_handlers)
    return 0


def _isolate(parent: int) -> None:
    """Die with *parent*, write no core file, and be the first to be killed when memory runs out."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        # The parent died before prctl took effect.
        os._exit(0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")


def serve(requests: int, answers: int, make_handlers: Callable[[], Mapping[str, Handler]]) -> None:
    """Answer what is read from *requests* on *answers* until its end or the end of a rest."""
    decoder = Decoder()
    handlers: Mapping[str, Handler] | None = make_handlers()
    _write(answers, _ready())
    while True:
        message = decoder.take()
        if message is None:
            if handlers is None and not _is_woken(requests):
                return
            data = os.read(requests, _READ_BYTES)
            if not data:
                return
            decoder.feed(data)
        elif message.kind == REST:
            handlers = None
            gc.collect()
        elif message.kind == WAKE:
            handlers = make_handlers()
            _write(answers, _ready())
        else:
            _write(answers, _answer(handlers or {}, message))


def _is_woken(requests: int) -> bool:
    """Whether anything can be read from *requests* within the time of rest."""
    poll = select.poll()
    poll.register(requests, select.POLLIN)
    return bool(poll.poll(REST_S * 1000))


def _ready() -> Message:
    return Message("ready", {"pid": os.getpid()})


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
