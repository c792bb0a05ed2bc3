"""Threads of parallel loops: every piece runs once, whoever comes late, sleeps, forks or ends."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from ansorpy.codegen.llvm.emit.functions import TEAM
from ansorpy.codegen.llvm.objects.build import compile_ir
from ansorpy.codegen.llvm.objects.jit import LoadedObjects, load
from ansorpy.codegen.llvm.threads.team import STOP, needs_team, team_object
from ansorpy.target import Target

# Every piece adds 1 to a cell of its own and the number of pieces to the next.
SOURCE = f"""
declare void @{TEAM}(ptr, ptr, i32)

define internal void @piece(ptr %data, i64 %number, i64 %pieces) {{
  %at = shl i64 %number, 1
  %cell = getelementptr i64, ptr %data, i64 %at
  %count = load i64, ptr %cell
  %more = add i64 %count, 1
  store i64 %more, ptr %cell
  %beside = getelementptr i64, ptr %cell, i64 1
  store i64 %pieces, ptr %beside
  ret void
}}

define void @regions(ptr %data, i32 %threads, i64 %repeats) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void @{TEAM}(ptr @piece, ptr %data, i32 %threads)
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %repeats
  br i1 %again, label %loop, label %done
done:
  ret void
}}
"""

Cells = npt.NDArray[np.int64]


@pytest.fixture(scope="module")
def library() -> LoadedObjects:
    return load([compile_ir(SOURCE, Target.host())], symbols=["regions"])


def run(library: LoadedObjects, threads: int, repeats: int) -> Cells:
    signature = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64)
    cells = np.zeros((2000, 2), dtype=np.int64)
    signature(library.address("regions"))(cells.ctypes.data, threads, repeats)
    return cells


@pytest.mark.parametrize("threads", [1, 2, 3, 7, 33])
def test_each_piece_of_each_region_runs_once(library: LoadedObjects, threads: int) -> None:
    cells = run(library, threads, 500)
    assert (cells[:threads, 0] == 500).all() and (cells[:threads, 1] == threads).all()
    assert not cells[threads:].any()


def test_a_caller_that_finds_the_team_busy_does_all_pieces_itself(library: LoadedObjects) -> None:
    stop = threading.Event()

    def hold() -> None:
        while not stop.is_set():
            run(library, 2, 20_000)

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        time.sleep(0.01)
        for threads in (3, 5, 9):
            assert (run(library, threads, 300)[:threads] == [300, threads]).all()
    finally:
        stop.set()
        holder.join()


def test_callers_do_not_disturb_each_other(library: LoadedObjects) -> None:
    found: list[Cells] = []
    callers = [
        threading.Thread(target=lambda: found.append(run(library, 3, 5000))) for _ in range(4)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert all((cells[:3, 0] == 5000).all() for cells in found) and len(found) == 4


def test_threads_that_went_to_sleep_come_back(library: LoadedObjects) -> None:
    for _ in range(5):
        time.sleep(0.03)
        assert (run(library, 2, 2)[:2, 0] == 2).all()


# Has everything imported and compiled once, and nothing loaded: each script it is given runs in a
# process that it forks, which loads the library and ends as Python ends.
SERVER = f"""
import ctypes, json, os, signal, sys, time
import numpy as np
from ansorpy.codegen.llvm.objects.build import compile_ir
from ansorpy.codegen.llvm.objects.jit import load
from ansorpy.target import Target
from tests.waiting import comes_true

def tasks():
    return set(os.listdir("/proc/self/task"))

code = compile_ir({SOURCE!r}, Target.host())
for script in sys.stdin:
    child = os.fork()
    if not child:
        break
    print(os.waitpid(child, 0)[1], flush=True)
else:
    sys.exit()
signal.alarm(60)
library = load([code], symbols=["regions"])
call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64)
regions = call(library.address("regions"))
cells = np.zeros((64, 2), dtype=np.int64)
exec(json.loads(script))
"""
InAProcess = Callable[[str], None]


@pytest.fixture(scope="module")
def in_a_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InAProcess]:
    """Runs a script in a process of its own, where no thread was started before."""
    errors = tmp_path_factory.mktemp("scripts") / "errors.txt"
    with (
        errors.open("w") as told,
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", SERVER],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=told, text=True,
        ) as server,
    ):  # fmt: skip
        assert server.stdin is not None and server.stdout is not None
        asked, answers = server.stdin, server.stdout

        def run_apart(script: str) -> None:
            print(json.dumps(textwrap.dedent(script)), file=asked, flush=True)
            assert answers.readline() == "0\n", errors.read_text()

        yield run_apart
        asked.close()


def test_a_forked_child_computes_too(in_a_process: InAProcess) -> None:
    in_a_process("""
        regions(cells.ctypes.data, 3, 10)
        child = os.fork()
        regions(cells.ctypes.data, 3, 10)
        assert (cells[:3, 0] == 20).all()
        if child:
            assert os.waitpid(child, 0)[1] == 0
    """)


@pytest.mark.parametrize("pause", [0.0, 0.1])  # the parent's threads look for work, or sleep
def test_a_forked_child_has_threads_of_its_own(in_a_process: InAProcess, pause: float) -> None:
    in_a_process(f"""
        import signal
        for threads in (2, 3, 5):  # the parent has three
            cells[:] = 0
            regions(cells.ctypes.data, 3, 10)
            time.sleep({pause})
            child = os.fork()
            if child:
                assert os.waitpid(child, 0)[1] == 0
                regions(cells.ctypes.data, 3, 10)
                assert (cells[:3, 0] == 20).all()
                continue
            signal.alarm(20)  # it ends in any case
            cores = os.sched_getaffinity(0)
            cells[:] = 0
            for _ in range(2):
                regions(cells.ctypes.data, threads, 10)
                time.sleep(0.05)
            assert (cells[:threads, 0] == 20).all() and not cells[threads:].any()
            own = tasks()
            assert len(own) == threads, own
            assert comes_true(lambda: all(os.sched_getaffinity(int(t)) == cores for t in own))
            break
    """)


def test_children_of_children_have_threads_of_their_own(in_a_process: InAProcess) -> None:
    in_a_process("""
        for generation in range(3):
            regions(cells.ctypes.data, 3, 10)
            assert (cells[:3, 0] == 10 * generation + 10).all()
            assert len(tasks()) == 3
            if child := os.fork():
                assert os.waitpid(child, 0)[1] == 0
                break
    """)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_child_of_a_process_that_computes_meanwhile(
    in_a_process: InAProcess, threads: int
) -> None:
    in_a_process(f"""
        import signal, threading
        stop = threading.Event()
        others = np.zeros((64, 2), dtype=np.int64)

        def work():
            while not stop.is_set():
                regions(others.ctypes.data, {threads}, 5000)

        worker = threading.Thread(target=work)
        worker.start()
        try:
            for _ in range(20):
                child = os.fork()
                if not child:
                    signal.alarm(20)
                    others[:] = 0
                    regions(cells.ctypes.data, 3, 500)
                    right = (cells[:3] == [500, 3]).all() and not others.any()
                    os._exit(not (right and len(tasks()) == 3))
                assert os.waitpid(child, 0)[1] == 0
        finally:
            stop.set()
            worker.join()
    """)


def test_a_forked_child_stays_on_all_its_cores(in_a_process: InAProcess) -> None:
    in_a_process("""
        cores = os.sched_getaffinity(0)
        for pause in (0.0, 0.1):  # the threads look for work, or sleep
            regions(cells.ctypes.data, 3, 10)
            time.sleep(pause)
            child = os.fork()
            if not child:
                for _ in range(20):
                    regions(cells.ctypes.data, 3, 10)
                os._exit(os.sched_getaffinity(0) != cores)
            assert os.waitpid(child, 0)[1] == 0
    """)


def test_a_process_ends_with_its_threads_awake_and_asleep(in_a_process: InAProcess) -> None:
    in_a_process("regions(cells.ctypes.data, 4, 10)")
    in_a_process("regions(cells.ctypes.data, 4, 10); time.sleep(0.1)")


# Every thread is found on core 0, and what moves them is only counted.
CORES = """
@hook = global ptr null
@moves = global i64 0

define i32 @sched_getcpu() {
  ret i32 0
}

define i32 @sched_getaffinity(i32 %thread, i64 %size, ptr %cores) {
  %hook = load ptr, ptr @hook
  %status = call i32 %hook()
  ret i32 %status
}

define i32 @pthread_setaffinity_np(i64 %thread, i64 %size, ptr %cores) {
  %old = atomicrmw add ptr @moves, i64 1 seq_cst
  ret i32 1
}
"""


def test_a_thread_that_was_joined_is_not_moved() -> None:
    target = Target.host()
    objects = [
        team_object(target, ends_with_library=False),
        compile_ir(SOURCE, target),
        compile_ir(CORES, target),
    ]
    library = load(objects, symbols=[TEAM, STOP, "regions", "hook", "moves"])
    asks, joined = threading.Event(), threading.Event()

    @ctypes.CFUNCTYPE(ctypes.c_int)
    def hook() -> int:
        asks.set()
        joined.wait(60)
        return 0

    ctypes.c_void_p.from_address(library.address("hook")).value = ctypes.cast(
        hook, ctypes.c_void_p
    ).value
    moves = ctypes.c_int64.from_address(library.address("moves"))

    def compute() -> None:
        while not asks.is_set():  # until the thread was seen on core 0
            run(library, 2, 10)

    caller = threading.Thread(target=compute)
    caller.start()
    assert asks.wait(60)
    ctypes.CFUNCTYPE(None)(library.address(STOP))()
    assert moves.value == 0
    joined.set()
    caller.join()
    assert moves.value == 0


def test_threads_that_share_one_core_get_through(in_a_process: InAProcess) -> None:
    in_a_process("""
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        regions(cells.ctypes.data, 4, 2000)
        time.sleep(0.1)
        regions(cells.ctypes.data, 4, 2000)
        assert (cells[:4, 0] == 4000).all()
    """)


def test_woken_threads_may_run_on_any_core_again(in_a_process: InAProcess) -> None:
    in_a_process("""
        before = tasks()
        for _ in range(3):
            regions(cells.ctypes.data, 3, 20)
            time.sleep(0.1)  # asleep: woken by the next region, on another core than the caller's
        regions(cells.ctypes.data, 3, 20)
        team, cores = tasks() - before, os.sched_getaffinity(0)
        assert comes_true(lambda: all(os.sched_getaffinity(int(t)) == cores for t in team))
        assert (cells[:3, 0] == 80).all()
    """)


def test_signals_go_to_the_main_thread(in_a_process: InAProcess) -> None:
    in_a_process("""
        before = tasks()
        regions(cells.ctypes.data, 4, 10)
        team = tasks() - before
        assert len(team) == 3

        def blocks_all_that_can_be(number):  # once it runs: glibc starts it with all blocked
            status = open(f"/proc/self/task/{number}/status").read()
            [blocked] = [line for line in status.splitlines() if line.startswith("SigBlk")]
            return blocked.endswith("fffffffe7ffbfeff")

        assert comes_true(lambda: all(map(blocks_all_that_can_be, team)))
    """)


def test_a_library_can_be_unloaded_while_its_threads_look_for_work(
    in_a_process: InAProcess, tmp_path: Path
) -> None:
    path = linked(tmp_path)
    in_a_process(f"""
        import _ctypes
        before = tasks()
        for pause in (0.0, 0.1):
            handle = ctypes.CDLL({str(path)!r})
            handle.regions(ctypes.c_void_p(cells.ctypes.data), 3, ctypes.c_int64(100))
            time.sleep(pause)
            _ctypes.dlclose(handle._handle)
            assert comes_true(lambda: tasks() == before)  # the system lists a joined one a while
        assert (cells[:3, 0] == 200).all()
    """)


def test_a_child_has_threads_of_its_own_for_a_library_and_unloads_it(
    in_a_process: InAProcess, tmp_path: Path
) -> None:
    path = linked(tmp_path)
    in_a_process(f"""
        import _ctypes, signal
        handle = ctypes.CDLL({str(path)!r})
        data = ctypes.c_void_p(cells.ctypes.data)
        handle.regions(data, 3, ctypes.c_int64(100))
        for _ in range(2):
            child = os.fork()
            if not child:
                signal.alarm(20)
                handle.regions(data, 3, ctypes.c_int64(100))
                assert (cells[:3, 0] == 200).all()
                assert len(tasks()) == 3
                _ctypes.dlclose(handle._handle)
                assert comes_true(lambda: len(tasks()) == 1)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        _ctypes.dlclose(handle._handle)
        if not os.fork():
            os._exit(0)  # nothing is called that was unloaded
        assert os.wait()[1] == 0
    """)


def linked(folder: Path) -> Path:
    """A library of the regions and a team that ends with it."""
    from ansorpy.runtime.library.linker import find_linker

    target = Target.host()
    parts = {
        "team.o": team_object(target, ends_with_library=True),
        "regions.o": compile_ir(f'target triple = "{target.triple}"\n{SOURCE}', target),
    }
    for name, content in parts.items():
        (folder / name).write_bytes(content)
    exports = folder / "exports.map"
    exports.write_text("{ global: regions; local: *; };\n")
    path = folder / "net.so"
    find_linker(target).shared_library(
        path, [folder / name for name in parts], exports, needs=("-pthread",)
    )
    return path


def test_only_code_with_parallel_loops_needs_a_team() -> None:
    assert needs_team(compile_ir(SOURCE, Target.host()))
    assert not needs_team(compile_ir("define void @f() {\n  ret void\n}\n", Target.host()))


@pytest.mark.parametrize("name", ["x86-64-v2", "cortex-a76"])
def test_it_is_made_for_other_machines(name: str) -> None:
    assert team_object(Target.parse(name), ends_with_library=True)[:4] == b"\x7fELF"
