"""The first Ctrl-C or SIGTERM is obeyed where nothing is lost; the second raises at once."""

from __future__ import annotations

import os
import signal

import pytest

from ansorpy.__main__ import main
from ansorpy.cli.exit_codes import EXIT_INTERRUPTED
from ansorpy.cli.interrupt import graceful_interrupt


def test_an_interrupt_while_the_command_line_loads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("ansorpy.cli.main.main", interrupted)
    assert main() == EXIT_INTERRUPTED
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_first_and_second_signal(number: int, capsys: pytest.CaptureFixture[str]) -> None:
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
    assert "finishing this batch" in capsys.readouterr().err
