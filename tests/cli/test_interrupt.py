"""The first Ctrl-C or SIGTERM is obeyed where nothing is lost; the second raises at once."""

from __future__ import annotations

import os
import signal

import pytest

from ansorpy.cli.interrupt import graceful_interrupt


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
