"""A worker may hang, crash, lie or stop reading; its driver notices, reports it and goes on."""

from __future__ import annotations

import os
import select
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

import ansorpy
from ansorpy.deadline import until
from ansorpy.errors import AnsorpyError
from ansorpy.measure.workers import supervisor
from ansorpy.measure.workers.pool import ask_all
from ansorpy.measure.workers.processes import is_running, process_identity
from ansorpy.measure.workers.protocol import Message
from ansorpy.measure.workers.started import Process
from ansorpy.measure.workers.supervisor import Failure, Worker
from tests.measure.workers.bare_server import BARE
from tests.waiting import comes_true

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
    assert main.endswith("ansorpy/measure/workers/fork_server.py")


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
    assert comes_true(lambda: not worker.is_alive)
    assert ask(worker, "who").fields["pid"] != pid


def test_a_worker_that_cannot_start_is_one_plain_error():
    worker = Worker("tests.measure.no_such_module")
    with pytest.raises(AnsorpyError, match="cannot start(.|\n)*no_such_module"):
        worker.request(Message("echo"), 5.0)
    assert not worker.is_alive


def test_a_start_is_not_waited_for_beyond_the_deadline(tmp_path):
    gate = tmp_path / "gate"
    worker = Worker(PAYLOAD, environment={"GATE": str(gate)}, start_timeout_s=60.0)
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
        outcomes = dict(ask_all(workers, messages, 1.0))
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


def test_requests_of_workers_that_the_system_kills_are_repeated_once(worker, tmp_path):
    messages = [
        Message("killed", {"spared": str(tmp_path / "spared")}),
        Message("signal", {"number": int(signal.SIGKILL)}),
    ]
    found = dict(ask_all([worker], messages, 10.0))
    assert found[0] == Message("spared")
    assert found[1] == Failure("crash", "the worker was killed by SIGKILL", was_killed=True)


def test_an_answer_that_came_while_the_driver_was_suspended_counts(worker, monkeypatch):
    class Suspended(selectors.DefaultSelector):
        """Is stopped from the wait's start to past its end, as by Ctrl-Z, and then finds nothing.

        That is how ``epoll_wait``, which SIGCONT interrupts, ends.
        """

        def select(self, timeout=None):
            super().select()
            assert timeout is not None
            time.sleep(timeout)
            return []

    assert worker.make_ready() is None
    monkeypatch.setattr(selectors, "DefaultSelector", Suspended)
    [(_, reply)] = ask_all([worker], [Message("echo", {"n": 1})], 0.05)
    assert reply == Message("echo", {"n": 1})


def test_time_without_a_core_is_not_the_candidates():
    """Three rivals on its core leave a worker a quarter of the time."""
    core = min(os.sched_getaffinity(0))
    worker, *rivals = (Worker(PAYLOAD, cores=[core]) for _ in range(4))
    with ExitStack() as closing_all:
        for each in (worker, *rivals):
            closing_all.callback(each.close)
            ask(each, "echo")
        for rival in rivals:
            rival.send(Message("spin"), time.monotonic() + 10.0)
        worked = worker.request(Message("work", {"s": 0.1}), 0.12, starved_s=20.0)
        spun = worker.request(Message("spin"), 0.1, starved_s=0.3)
    assert worked == Message("worked")
    assert spun == Failure("timeout", "no answer within 0.3 s")


def test_where_waits_are_not_counted_what_does_not_run_on_its_cores_waits(monkeypatch):
    monkeypatch.setattr(Path, "glob", lambda *_: iter(()))
    with closing(Worker(PAYLOAD, cores=[min(os.sched_getaffinity(0))])) as worker:
        ask(worker, "echo")
        spun, slept = (
            worker.request(Message(kind, {"s": 20.0}), 0.2, starved_s=0.6)
            for kind in ("spin", "sleep")
        )
    assert isinstance(spun, Failure) and spun.kind == "timeout"
    assert slept == Failure("timeout", "no answer within 0.6 s")


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="waits are not counted")
def test_a_worker_that_leaves_cores_idle_has_not_waited_for_them():
    with closing(Worker(PAYLOAD, cores=sorted(os.sched_getaffinity(0)))) as worker:
        slept = worker.request(Message("sleep", {"s": 20.0}), 0.1, starved_s=20.0)
    assert slept == Failure("timeout", "no answer within 0.1 s")


def test_an_answer_is_received_to_its_end_though_its_time_is_up(worker):
    assert worker.make_ready() is None
    sent = Message("echo", {}, (bytes(3_000_001),))
    worker.send(sent, time.monotonic() + 10.0)
    assert select.select([worker], [], [], 10.0)[0]
    assert worker.receive(0.0) == sent


def test_an_interrupted_kill_leaves_no_open_file(worker, monkeypatch):
    def interrupted(process: Process, timeout_s: float) -> bool:
        raise KeyboardInterrupt

    ask(worker, "echo")
    worker.close()
    before = len(os.listdir("/proc/self/fd"))
    ask(worker, "echo")
    with monkeypatch.context() as stopped, pytest.raises(KeyboardInterrupt):
        stopped.setattr(Process, "wait", interrupted)
        worker.close()
    assert len(os.listdir("/proc/self/fd")) == before


MANY = """
import resource
from ansorpy.measure.workers.protocol import Message
from ansorpy.measure.workers.supervisor import Worker
resource.setrlimit(resource.RLIMIT_NOFILE, (48, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
workers = [Worker("tests.measure.payload") for _ in range(12)]
for worker in workers:
    worker.start()
print([worker.request(Message("echo"), 20.0).kind for worker in workers].count("echo"))
"""


def test_a_low_soft_limit_of_open_files_does_not_limit_the_workers():
    environment = {**os.environ, "PYTHONPATH": ROOT}
    command = [sys.executable, "-c", BARE + MANY]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert done.stdout == "12\n", done.stderr


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_waiting_ends_the_worker():
    worker = Worker(PAYLOAD)
    ask(worker, "echo")
    main = threading.main_thread().ident
    with pytest.raises(KeyboardInterrupt):
        threading.Timer(0.3, signal.pthread_kill, [main, signal.SIGINT]).start()
        worker.request(Message("sleep", {"s": 20.0}), 30.0)
    assert not worker.is_alive


DRIVER = """
import time
from ansorpy.measure.workers.protocol import Message
from ansorpy.measure.workers.supervisor import Worker
workers = [Worker("tests.measure.payload") for _ in range(3)]
print(*(worker.request(Message("who"), 20.0).fields["pid"] for worker in workers), flush=True)
for worker, kind in zip(workers, ("spin", "deaf", "sleep")):
    worker.send(Message(kind, {"s": 60.0}), time.monotonic() + 60.0)
print("busy", flush=True)
workers[0].receive(60.0)
"""


STARTING = """
from ansorpy.measure.workers import started
from ansorpy.measure.workers.started import Process
from ansorpy.measure.workers.supervisor import Worker
worker = Worker("tests.measure.payload")
worker.start()
[server] = started._SERVER
print(server.process.pid, flush=True)
input()
"""


def test_a_driver_killed_while_the_fork_server_starts_leaves_no_orphan(tmp_path):
    """The interpreter of this server sleeps before any line of ours runs in it."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, time\nif 'fork_server' in str(sys.orig_argv): time.sleep(60)\n"
    )
    paths = os.pathsep.join([str(tmp_path), ROOT])
    driver = subprocess.Popen(
        [sys.executable, "-c", STARTING], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip
    assert driver.stdout is not None
    identity = process_identity(int(driver.stdout.readline()))
    assert is_running(identity)
    driver.kill()
    driver.communicate()
    assert has_ended(identity)


def has_ended(identity: str) -> bool:
    """Whether the process ends soon."""
    return comes_true(lambda: not is_running(identity))


def test_a_killed_driver_leaves_no_orphan():
    """Whether its workers compute, ignore signals or sleep."""
    driver = subprocess.Popen(
        [sys.executable, "-c", BARE + DRIVER],
        stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": ROOT},
    )  # fmt: skip
    assert driver.stdout is not None
    identities = [process_identity(int(pid)) for pid in driver.stdout.readline().split()]
    assert driver.stdout.readline() == "busy\n"
    assert len(identities) == 3 and all(is_running(identity) for identity in identities)
    time.sleep(0.2)
    driver.kill()
    driver.wait()
    driver.stdout.close()
    assert all(has_ended(identity) for identity in identities)


def test_a_process_that_survives_sigkill_is_left_behind(monkeypatch, caplog):
    monkeypatch.setattr("ansorpy.measure.workers.supervisor.ABANDONED_S", 0.05)
    worker = Worker(PAYLOAD)
    worker.start()
    pid = worker.pid
    assert pid is not None
    with monkeypatch.context() as stuck:
        stuck.setattr(Process, "send_signal", lambda process, number: None)
        assert worker.kill() is None
    assert f"worker {pid} (tests.measure.payload) did not end" in caplog.text
    assert ask(worker, "who").fields["pid"] != pid
    worker.close()


def pid_of(worker: Worker) -> int:
    return int(str(ask(worker, "who").fields["pid"]))


def test_a_worker_has_the_drivers_present_environment_folder_and_cores(monkeypatch, tmp_path):
    monkeypatch.setenv("ANSORPY_SOMETHING", "new")
    monkeypatch.delenv("ANSORPY_VERIFY")
    monkeypatch.chdir(tmp_path)
    cores = sorted(os.sched_getaffinity(0))
    with closing(Worker(PAYLOAD, cores=cores[:1], environment={"ANSORPY_ELSE": "1"})) as worker:
        there = ask(worker, "who").fields
    assert there["folder"] == str(tmp_path)
    assert there["cores"] == cores[:1]
    given = there["environment"]
    assert isinstance(given, dict)
    assert given["ANSORPY_SOMETHING"] == "new"
    assert given["ANSORPY_ELSE"] == "1"
    assert "ANSORPY_VERIFY" not in given


def test_a_worker_outlives_the_thread_that_started_it():
    with closing(Worker(PAYLOAD)) as worker:
        with ThreadPoolExecutor(1) as pool:
            pid = pool.submit(pid_of, worker).result()
        assert pid_of(worker) == pid


def test_closed_workers_leave_no_open_file():
    with closing(Worker(PAYLOAD)) as worker:
        ask(worker, "echo")  # the fork server has started
        worker.close()
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(3):
            ask(worker, "echo")
            worker.close()
        assert len(os.listdir("/proc/self/fd")) == before


def test_workers_end_with_their_fork_server_and_the_next_has_another():
    with closing(Worker(PAYLOAD)) as first, closing(Worker(PAYLOAD)) as second:
        identities = [process_identity(pid_of(worker)) for worker in (first, second)]
        os.kill(int(str(ask(first, "who").fields["parent"])), signal.SIGKILL)
        assert all(has_ended(identity) for identity in identities)
        pids = [pid_of(worker) for worker in (first, second)]
        assert len({*pids, *identities}) == 4


CROWDED = """
import os, resource
from ansorpy.errors import AnsorpyError
from ansorpy.measure.workers.protocol import Message
from ansorpy.measure.workers.supervisor import Worker
worker = Worker("tests.measure.payload")
server = worker.request(Message("who"), 20.0).fields["parent"]
limits = resource.prlimit(server, resource.RLIMIT_NPROC)
resource.prlimit(server, resource.RLIMIT_NPROC, (1, limits[1]))
other = Worker("tests.measure.payload")
try:
    other.request(Message("who"), 20.0)
except AnsorpyError as error:
    print(error)
resource.prlimit(server, resource.RLIMIT_NPROC, limits)
assert other.request(Message("who"), 20.0).fields["parent"] == server
assert worker.is_alive
"""


@pytest.mark.skipif(os.geteuid() == 0, reason="root may start any number of processes")
def test_a_machine_full_of_processes_ends_no_other_worker():
    environment = {**os.environ, "PYTHONPATH": ROOT}
    command = [sys.executable, "-c", BARE + CROWDED]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    assert "cannot start" in done.stdout and "fork: " in done.stdout


FORKED = """
import os, sys, time
from ansorpy.measure.workers.protocol import Message
from ansorpy.measure.workers.started import Process
from ansorpy.measure.workers.supervisor import Worker
worker = Worker("tests.measure.payload")
first = worker.request(Message("who"), 20.0).fields["pid"]
sys.stdout.flush()
if os.fork() == 0:
    other = Worker("tests.measure.payload")
    print(first, other.request(Message("who"), 20.0).fields["pid"], flush=True)
    time.sleep(60)
worker.request(Message("sleep", {"s": 60.0}), 60.0)
"""


def test_a_fork_of_the_driver_has_workers_of_its_own_and_keeps_none_alive():
    driver = subprocess.Popen(
        [sys.executable, "-c", BARE + FORKED], start_new_session=True,
        stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": ROOT},
    )  # fmt: skip
    assert driver.stdout is not None
    try:
        first, other = (process_identity(int(pid)) for pid in driver.stdout.readline().split())
        driver.kill()
        driver.wait()
        assert has_ended(first)
        assert is_running(other)
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.stdout.close()
    assert has_ended(other)
