from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from ansorpy.codegen.singletons import singleton


def test_threads_that_ask_at_once_get_one_object() -> None:
    made: list[object] = []

    @singleton
    def make(number: int) -> object:
        time.sleep(0.02)  # the other threads arrive meanwhile
        made.append(object())
        return made[-1]

    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(make, [1] * 8))
        others = set(pool.map(make, [2] * 8))
    assert len(found) == len(others) == 1 and found | others == set(made)
    assert len(made) == 2


def test_one_may_need_another_of_its_kind() -> None:
    @singleton
    def count(below: int) -> int:
        return 0 if below == 0 else 1 + count(below - 1)

    assert count(5) == 5


def test_what_fails_is_tried_again() -> None:
    tries: list[int] = []

    @singleton
    def make() -> int:
        tries.append(len(tries))
        if len(tries) == 1:
            raise ValueError("not yet")
        return len(tries)

    with pytest.raises(ValueError, match="not yet"):
        make()
    assert make() == make() == 2


def test_a_forked_child_waits_for_no_thread_of_its_parent() -> None:
    begun, go_on = Event(), Event()
    parent = os.getpid()

    @singleton
    def make() -> int:
        if os.getpid() == parent:
            begun.set()
            go_on.wait()
        return os.getpid()

    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(make)
        begun.wait()
        child = os.fork()
        if not child:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
            signal.alarm(20)
            os._exit(make() != os.getpid())
        status = os.waitpid(child, 0)[1]
        go_on.set()
    assert status == 0 and made.result() == parent
