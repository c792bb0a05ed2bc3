"""The first Ctrl-C is noted and obeyed where nothing is lost, the second raises at once."""

from __future__ import annotations

import os
import signal

import pytest

from ansorpy.cli.interrupt import graceful_interrupt


def test_first_and_second_signal(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    with graceful_interrupt() as interrupt:
        interrupt.stop_here()
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupt.requested
        with pytest.raises(KeyboardInterrupt):
            interrupt.stop_here()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    assert "finishing this batch" in capsys.readouterr().err
