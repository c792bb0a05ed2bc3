"""Programs in C in this process."""

from __future__ import annotations

import ctypes
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from ansorpy.codegen.backends import codegen_of
from ansorpy.codegen.c.compiler import find_compiler
from ansorpy.codegen.c.loader import can_compile, load
from ansorpy.codegen.c.style import Style
from ansorpy.codegen.object_code import KERNEL
from ansorpy.target import Target
from tests.codegen.c.compiled import needs_cc, needs_openmp
from tests.codegen.programs import at, buffer, empty, nest, program, put, random

WITHOUT_OPENMP = """#!/bin/sh
echo "$@" >> {log}
case "$*" in *-fopenmp*) echo "no OpenMP here" >&2; exit 1;; esac
exec {compiler} "$@"
"""


@needs_cc
def test_a_compiler_that_lacks_openmp_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, script = tmp_path / "calls.txt", tmp_path / "cc"
    compiler = " ".join(find_compiler().command)
    script.write_text(WITHOUT_OPENMP.format(log=log, compiler=compiler))
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    assert not any(can_compile(Style(threads="openmp")) for _ in range(3))
    assert can_compile(Style(threads="none"))
    assert log.read_text().count("-fopenmp") == 1


@needs_openmp
def test_a_forked_child_has_threads_of_its_own() -> None:
    x, y = buffer("x", 64), buffer("y", 64)
    body = nest("p64", lambda i: put(y, (i,), at(x, i) * 2.0))
    target = Target.parse("c:cores=2")
    code = codegen_of(target).build(program(body, [x], [y]), target, symbol="doubled")
    given = random((64,))
    with load([code]) as library:
        kernel = KERNEL(library.address("doubled"))

        def is_right() -> bool:
            found = empty((64,))
            places = (ctypes.c_void_p * 2)(given.ctypes.data, found.ctypes.data)
            kernel(ctypes.addressof(places), None, 2)
            return np.array_equal(found, given * 2)

        assert is_right()
        child = os.fork()
        if not child:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
            signal.alarm(20)
            os._exit(not is_right())
        assert os.waitpid(child, 0)[1] == 0
        assert is_right()
