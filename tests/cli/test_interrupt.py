"""The first Ctrl-C or SIGTERM is obeyed where nothing is lost; the second raises at once."""

from __future__ import annotations

import os
import signal
import sys
from io import BufferedWriter, FileIO, TextIOWrapper

import pytest

from ansorpy.__main__ import main
from ansorpy.api.request import Request
from ansorpy.cli.exit_codes import EXIT_INTERRUPTED
from ansorpy.cli.interrupt import graceful_interrupt
from ansorpy.cli.progress import Talk
from ansorpy.cli.searching import followed
from ansorpy.cli.streams import make_lenient
from ansorpy.errors import Interrupted


def test_an_interrupt_while_the_command_line_loads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("ansorpy.cli.main.main", interrupted)
    assert main() == EXIT_INTERRUPTED
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize(
    ("exports", "hint"),
    [
        ([], "the same command continues"),
        (["export a", "export b"],
         "the same command continues; to write what was found:\n  export a\n  export b"),
    ],
)  # fmt: skip
def test_a_stop_says_how_to_go_on(exports: list[str], hint: str) -> None:
    request = Request.of(effort="none", threads=1)
    with (
        pytest.raises(Interrupted) as caught,
        followed(request, Talk(quiet=True), exports),
    ):
        raise KeyboardInterrupt
    assert caught.value.hint == hint


def test_the_reader_of_messages_may_end_of_the_same_interrupt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as gone, monkeypatch.context() as streams:
        streams.setattr(sys, "stderr", gone)
        streams.setattr(sys, "stdout", gone)
        make_lenient()
        with graceful_interrupt() as interrupt:
            os.kill(os.getpid(), signal.SIGINT)
            assert interrupt.requested
        print("the trials so far are in t.db", file=sys.stderr, flush=True)


def test_a_print_may_be_interrupted(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    class Interrupted(FileIO):
        """The signal comes while this is written to."""

        def write(self, data: object, /) -> int:
            os.kill(os.getpid(), signal.SIGINT)
            return len(memoryview(data))  # type: ignore[arg-type]

    with monkeypatch.context() as streams, graceful_interrupt() as interrupt:
        raw = BufferedWriter(Interrupted(2, "w", closefd=False))
        streams.setattr(sys, "stderr", TextIOWrapper(raw, line_buffering=True))
        print("trials 1", file=sys.stderr)
        assert interrupt.requested
    assert "finishing this batch" in capfd.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_first_and_second_signal(number: int, capfd: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(number)
    with graceful_interrupt() as interrupt:
        interrupt.stop_here()
        os.kill(os.getpid(), number)
        assert interrupt.requested
        with pytest.raises(KeyboardInterrupt):
            interrupt.stop_here()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before
    assert "finishing this batch" in capfd.readouterr().err
