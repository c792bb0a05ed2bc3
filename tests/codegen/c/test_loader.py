"""Programs in C in this process."""

from __future__ import annotations

import ctypes
import os
import signal

import numpy as np

from ansorpy.codegen.backends import codegen_of
from ansorpy.codegen.c.loader import load
from ansorpy.codegen.object_code import KERNEL
from ansorpy.target import Target
from tests.codegen.c.compiled import needs_openmp
from tests.codegen.programs import at, buffer, empty, nest, program, put, random


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
