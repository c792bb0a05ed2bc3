"""A worker may hang, crash, lie or stop reading; its driver notices, reports it and goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest

import ansorpy
from ansorpy.deadline import until
from ansorpy.errors import AnsorpyError
from ansorpy.measure.workers import supervisor
from ansorpy.measure.workers.pool import ask_all
from ansorpy.measure.workers.processes import is_running, process_identity
from ansorpy.measure.workers.protocol import Message, encode
from ansorpy.measure.workers.supervisor import Failure, Worker

PAYLOAD = "tests.measure.payload"
ROOT = str(Path(ansorpy.__file__).parents[1])


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker(PAYLOAD)
    yield worker
    worker.close()


def ask(worker: Worker, kind: str, timeout_s: float = 10.0, **fields: object) -> Message:
    answer = worker.request(Message(kind, fields), timeout_s)
    assert isinstance(answer, Message), answer
    return answer


def failure(worker: Worker, kind: str, timeout_s: float = 10.0, **fields: object) -> Failure:
    answer = worker.request(Message(kind, fields), timeout_s)
    assert isinstance(answer, Failure), answer
    assert not worker.is_alive
    assert ask(worker, "echo", n=1).fields == {"n": 1}, "it does not come back"
    return answer


def test_one_process_answers_many_requests(worker):
    blob = os.urandom(3_000_001)
    answer = worker.request(Message("echo", {"a": [1, "b"]}, (blob, b"")), 10.0)
    assert answer == Message("echo", {"a": [1, "b"]}, (blob, b""))
    assert ask(worker, "who").fields["pid"] == ask(worker, "who").fields["pid"]


def test_the_users_main_module_is_not_imported(worker):
    main = str(ask(worker, "who").fields["main"])
    assert main.endswith("ansorpy/measure/workers/worker.py")


def test_errors_of_a_handler_are_answers(worker):
    ours, bug = ask(worker, "fail"), ask(worker, "bug")
    assert (ours.kind, ours.fields["type"]) == ("error", "ScheduleError")
    assert ours.fields["text"] == "no such loop\nhint: look again"
    assert "ZeroDivisionError" in str(bug.fields["text"])
    assert ask(worker, "unknown").fields["type"] == "KeyError"


def test_what_native_code_prints_is_kept_apart(worker):
    assert ask(worker, "print").kind == "printed"


@pytest.mark.parametrize(
    ("kind", "fields", "reason"),
    [
        ("segfault", {}, "killed by SIGSEGV"),
        ("signal", {"number": int(signal.SIGKILL)}, "killed by SIGKILL"),
        ("exit", {"status": 3}, "exit status 3 without an answer"),
        ("exit", {"status": 0}, "exit status 0 without an answer"),
        ("junk", {}, "junk instead of an answer"),
        ("torn", {}, "exit status 0 without an answer"),
        ("abort", {}, "LLVM ERROR: out of registers"),
    ],
)
def test_a_death_is_a_crash_with_its_reason(worker, kind, fields, reason):
    found = failure(worker, kind, **fields)
    assert found.kind == "crash"
    assert reason in found.reason


@pytest.mark.parametrize("kind", ["spin", "deaf"])
def test_an_endless_loop_is_killed_at_its_deadline(worker, kind):
    found = failure(worker, kind, timeout_s=0.3)
    assert found.kind == "timeout"
    assert "no answer within 0.3 s" in found.reason


def test_a_worker_killed_while_idle_costs_no_request(worker):
    pid = int(str(ask(worker, "who").fields["pid"]))
    os.kill(pid, signal.SIGKILL)
    while worker.is_alive:
        time.sleep(0.01)
    assert ask(worker, "who").fields["pid"] != pid


def test_a_worker_is_pinned_and_gets_its_environment():
    core = min(os.sched_getaffinity(0))
    worker = Worker(PAYLOAD, cores=[core], environment={"MARKER": "yes"})
    try:
        fields = ask(worker, "who").fields
        assert fields["cores"] == [core]
        assert fields["marker"] == "yes"
    finally:
        worker.close()


def test_a_worker_that_cannot_start_is_one_plain_error():
    worker = Worker("tests.measure.no_such_module")
    with pytest.raises(AnsorpyError, match="cannot start(.|\n)*no_such_module"):
        worker.request(Message("echo"), 5.0)
    assert not worker.is_alive


def test_a_start_is_not_waited_for_beyond_the_deadline(tmp_path):
    gate = tmp_path / "gate"
    worker = Worker(PAYLOAD, environment={"GATE": str(gate)}, start_timeout_s=5.0)
    cut = Failure("timeout", "not asked any more")
    try:
        with until(time.monotonic() + 0.1):
            assert worker.request(Message("echo"), 10.0) == cut
            assert worker.request(Message("echo"), 10.0) == cut
        with until(time.monotonic() + 0.1):
            assert list(ask_all([worker], [Message("echo")] * 2, 10.0)) == [(0, cut), (1, cut)]
        gate.touch()
        assert ask(worker, "echo", n=2).fields == {"n": 2}
        assert worker.generation == 1, "what it had imported is lost"
    finally:
        worker.close()


def test_what_a_start_takes_is_not_left_for_the_answer(monkeypatch):
    worker = Worker(PAYLOAD)
    monkeypatch.setattr(supervisor, "left_s", lambda: 0.25 if worker.is_ready else 30.0)
    try:
        answer = worker.request(Message("sleep", {"s": 20.0}), 10.0, starved_s=10.0)
    finally:
        worker.close()
    assert answer == Failure("timeout", "no answer within 0.25 s")


def test_requests_over_several_workers_lose_only_the_bad_ones():
    workers = [Worker(PAYLOAD) for _ in range(2)]
    kinds = ["echo", "segfault", "echo", "spin", "exit", "echo", "junk", "echo"]
    messages = [Message(kind, {"status": 0, "n": n}) for n, kind in enumerate(kinds)]
    try:
        outcomes = dict(ask_all(workers, messages, 0.5))
        pids = {worker.pid for worker in workers}
        # Whoever stops listening early gets no late answers.
        next(iter(ask_all(workers, [Message("echo"), Message("sleep", {"s": 5.0})], 9.0)))
        assert ask(workers[1], "echo", n=5).fields == {"n": 5}
    finally:
        for worker in workers:
            worker.close()
    assert len(outcomes) == len(kinds)
    assert len(pids) == 2
    for n, kind in enumerate(kinds):
        outcome = outcomes[n]
        if kind == "echo":
            assert isinstance(outcome, Message) and outcome.fields["n"] == n
        else:
            want = "timeout" if kind == "spin" else "crash"
            assert isinstance(outcome, Failure) and outcome.kind == want


def test_time_without_a_core_is_not_the_candidates(worker):
    """A sleeping worker looks like one that waits for a core; a spinning one had a core."""
    slept = worker.request(Message("sleep", {"s": 1.0}), 0.3, starved_s=20.0)
    assert isinstance(slept, Message)
    spun = worker.request(Message("spin"), 0.3, starved_s=20.0)
    assert isinstance(spun, Failure) and spun.kind == "timeout"
    slept = worker.request(Message("sleep", {"s": 20.0}), 0.1, starved_s=0.5)
    assert isinstance(slept, Failure) and slept.kind == "timeout"
    assert "no answer within 0.5 s" in slept.reason


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_waiting_ends_the_worker():
    worker = Worker(PAYLOAD)
    ask(worker, "echo")
    main = threading.main_thread().ident
    threading.Timer(0.3, signal.pthread_kill, [main, signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        worker.request(Message("sleep", {"s": 20.0}), 30.0)
    assert not worker.is_alive


DRIVER = """
import sys
from ansorpy.measure.workers.protocol import Message, encode
from ansorpy.measure.workers.supervisor import Worker
worker = Worker("tests.measure.payload")
print(worker.request(Message("who"), 20.0).fields["pid"], flush=True)
worker.request(Message(sys.argv[1], {"s": 60.0}), 60.0)
"""


STARTING = """
import sys
from ansorpy.measure.workers.supervisor import Worker
worker = Worker("tests.measure.payload", environment={"PYTHONPATH": sys.argv[1]})
worker.start()
print(worker.pid, flush=True)
input()
"""


def test_a_driver_killed_while_its_worker_starts_leaves_no_orphan(tmp_path):
    """The interpreter of this worker sleeps before any line of ours runs in it."""
    (tmp_path / "sitecustomize.py").write_text("import time\ntime.sleep(60)\n")
    driver = subprocess.Popen(
        [sys.executable, "-c", STARTING, str(tmp_path)], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": ROOT},
    )  # fmt: skip
    assert driver.stdout is not None
    identity = process_identity(int(driver.stdout.readline()))
    assert is_running(identity)
    driver.kill()
    driver.communicate()
    deadline = time.monotonic() + 5.0
    while is_running(identity) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(identity)


@pytest.mark.parametrize("busy_with", ["spin", "deaf", "sleep"])
def test_a_killed_driver_leaves_no_orphan(busy_with):
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, busy_with],
        stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": ROOT},
    )  # fmt: skip
    assert driver.stdout is not None
    identity = process_identity(int(driver.stdout.readline()))
    assert is_running(identity)
    time.sleep(0.2)
    driver.kill()
    driver.wait()
    driver.stdout.close()
    deadline = time.monotonic() + 5.0
    while is_running(identity) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(identity)


def test_a_process_that_survives_sigkill_is_left_behind(monkeypatch, caplog):
    monkeypatch.setattr("ansorpy.measure.workers.supervisor.ABANDONED_S", 0.05)
    worker = Worker(PAYLOAD)
    worker.start()
    pid = worker.pid
    assert pid is not None
    with monkeypatch.context() as stuck:
        stuck.setattr(subprocess.Popen, "terminate", lambda process: None)
        stuck.setattr(subprocess.Popen, "kill", lambda process: None)
        assert worker.kill() is None
    assert f"worker {pid} (tests.measure.payload) did not end" in caplog.text
    assert ask(worker, "who").fields["pid"] != pid
    worker.close()
    # Its end of the lifeline is closed, so the kernel may have killed it, and Python reaped it.
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def pid_of(worker: Worker) -> object:
    return ask(worker, "who").fields["pid"]


def test_a_kept_process_serves_the_next_worker_of_its_kind(monkeypatch):
    first = Worker(PAYLOAD, is_kept=True)
    pid = pid_of(first)
    first.close()
    assert not first.is_alive
    second = Worker(PAYLOAD, is_kept=True)
    assert pid_of(second) == pid
    assert pid_of(first) != pid, "one process serves two workers"
    second.close()
    monkeypatch.setenv("ANSORPY_SOMETHING", "else")
    with closing(Worker(PAYLOAD, is_kept=True)) as other:
        assert pid_of(other) not in (pid, first.pid), "it has another environment"
    with closing(Worker(PAYLOAD, memory_bytes=8 << 30, is_kept=True)) as limited:
        assert pid_of(limited) not in (pid, first.pid), "it has another limit"
    first.close()


def test_a_resting_process_has_forgotten_its_work():
    first = Worker(PAYLOAD, is_kept=True)
    assert ask(first, "count").fields["n"] == 1
    assert ask(first, "count").fields["n"] == 2
    first.close()
    with closing(Worker(PAYLOAD, is_kept=True)) as second:
        assert ask(second, "count").fields["n"] == 1


def test_a_process_that_owes_an_answer_is_not_kept():
    worker = Worker(PAYLOAD, is_kept=True)
    pid = pid_of(worker)
    assert worker.send(Message("sleep", {"s": 30.0}), time.monotonic() + 5.0) is None
    worker.close()
    with closing(Worker(PAYLOAD)) as other:
        assert pid_of(other) != pid


def test_a_process_killed_while_it_rests_is_replaced():
    first = Worker(PAYLOAD, is_kept=True)
    pid = int(str(pid_of(first)))
    first.close()
    os.kill(pid, signal.SIGKILL)
    with closing(Worker(PAYLOAD, is_kept=True)) as second:
        assert pid_of(second) != pid


def test_a_process_is_left_to_its_thread():
    """The kernel kills a worker when the thread that started it ends."""
    with ThreadPoolExecutor(1) as pool:
        first = Worker(PAYLOAD, is_kept=True)
        pid = pool.submit(pid_of, first).result()
        first.close()
        with closing(Worker(PAYLOAD, is_kept=True)) as second:
            assert pid_of(second) != pid
    with closing(Worker(PAYLOAD, is_kept=True)) as third:
        assert pid_of(third) != pid


def test_a_process_that_will_soon_end_is_not_woken(monkeypatch):
    first = Worker(PAYLOAD, is_kept=True)
    pid = pid_of(first)
    first.close()
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 50.0)
    with closing(Worker(PAYLOAD, is_kept=True)) as second:
        second.start()
        monkeypatch.undo()
        assert pid_of(second) != pid


def test_what_ended_while_it_rested_is_released():
    kept = [Worker(PAYLOAD, is_kept=True) for _ in range(3)]
    pids = [pid_of(worker) for worker in kept]
    kept[0].close()
    os.kill(int(str(pids[0])), signal.SIGKILL)
    deadline = time.monotonic() + 5.0
    before = len(os.listdir("/proc/self/fd"))
    while is_running(process_identity(int(str(pids[0])))) and time.monotonic() < deadline:
        time.sleep(0.01)
    kept[1].close()
    assert len(os.listdir("/proc/self/fd")) < before
    for worker in kept:
        worker.kill()


def test_a_process_that_nobody_wakes_ends(tmp_path: Path):
    script = tmp_path / "short.py"
    script.write_text(
        "import sys; from ansorpy.measure.workers import worker\n"
        "worker.REST_S = 0.05; sys.exit(worker.main(sys.argv[1:]))"
    )
    requests, to_worker = os.pipe()
    from_worker, answers = os.pipe()
    command = [sys.executable, str(script), str(requests), str(answers), str(os.getpid()), PAYLOAD]
    environment = {**os.environ, "PYTHONPATH": ROOT}
    process = subprocess.Popen(command, pass_fds=(requests, answers), env=environment)
    os.write(to_worker, encode(Message("rest", {})))
    assert process.wait(30.0) == 0
    for descriptor in (requests, to_worker, from_worker, answers):
        os.close(descriptor)
