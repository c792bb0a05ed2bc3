"""The earliest deadline holds, in the work it was set for."""

from __future__ import annotations

import threading
import time
from math import inf

import pytest

from ansorpy.deadline import OutOfTime, left_s, until


def test_the_earlier_of_two_holds_and_goes_with_its_block() -> None:
    now = time.monotonic()
    with until(now + 100):
        with until(now + 1000):
            assert left_s() <= 100
        with pytest.raises(OutOfTime), until(now - 5):
            assert left_s() <= -5
            raise OutOfTime
        assert 0 < left_s() <= 100
        with until(inf):
            assert left_s() <= 100
    assert left_s() == inf


def test_other_threads_have_their_own() -> None:
    seen: list[float] = []
    with until(time.monotonic()):
        thread = threading.Thread(target=lambda: seen.append(left_s()))
        thread.start()
        thread.join()
    assert seen == [inf]
