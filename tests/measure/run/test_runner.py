"""Whatever a candidate does when it runs is its result, and the others are measured."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from functools import partial
from math import inf
from pathlib import Path

import numpy as np
import pytest

import ansorpy
from ansorpy.deadline import left_s, until
from ansorpy.errors import ForeignFile, UsageError, VerificationFailed
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.measure.build.built import Built
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.recording import measure_recorded
from ansorpy.measure.result import MeasureResult, TrialKind, out_of_time
from ansorpy.measure.run import client
from ansorpy.measure.run.runner import LocalRunner, MeasureOptions
from ansorpy.measure.run.timing import TimingPolicy
from ansorpy.measure.trial_end import TrialEnd
from ansorpy.measure.workers.locks import lock_cores
from ansorpy.measure.workers.processes import is_running, process_identity, usable_cores
from ansorpy.schedule.state import State
from ansorpy.target import Target
from tests.measure.check.test_compare import cancelled
from tests.measure.definitions import matmul, task_of, tiled
from tests.measure.planted import PlantedBuilder, doubling, planted, planted_state
from tests.measure.workers.bare_server import BARE
from tests.waiting import comes_true

ROOT = str(Path(ansorpy.__file__).parents[1])
DAG = doubling()
TASK = task_of(DAG)


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRunner]:
    folder, policy = tmp_path_factory.mktemp("locks"), TimingPolicy(rounds=5)
    options = MeasureOptions(run_timeout_s=0.5, policy=policy, lock_folder=folder)
    with pytest.MonkeyPatch.context() as patch, LocalRunner(options, PlantedBuilder()) as runner:
        patch.setattr(client, "CREDIT_S", 1.0)  # what hangs ends sooner
        yield runner


@pytest.fixture
def real(tmp_path: Path) -> Iterator[LocalRunner]:
    with LocalRunner(MeasureOptions(lock_folder=tmp_path)) as runner:
        yield runner


@pytest.mark.parametrize(
    ("kind", "want", "reason"),
    [
        ("wrong", TrialKind.WRONG_RESULT, "of the largest value"),
        ("barely wrong", TrialKind.WRONG_RESULT, "of the largest value"),
        ("last unwritten", TrialKind.WRONG_RESULT, "C[1236] was never written"),
        ("first unwritten", TrialKind.WRONG_RESULT, "C[0] was never written"),
        ("writes beyond", TrialKind.CRASH, "SIGSEGV"),
        ("writes before", TrialKind.RUN_ERROR, "wrote outside its buffers"),
        ("writes its input", TrialKind.CRASH, "SIGSEGV"),
        ("null", TrialKind.CRASH, "guard pages"),
        ("trap", TrialKind.CRASH, "SIGILL"),
        ("hang", TrialKind.TIMEOUT, "no answer within"),
        ("error code", TrialKind.RUN_ERROR, "returned the error code 7"),
    ],
)
def test_a_bad_candidate_is_a_result_and_the_next_is_measured(runner, kind, want, reason):
    kinds = ["good", kind, "good too"]
    states = [planted_state(DAG, k) for k in kinds]
    good, bad, after = runner.measure(TASK, states, incumbent_s=None)
    assert good.ok and after.ok, (good.reason, after.reason)
    assert bad.kind is want, bad.reason
    assert reason in bad.reason
    assert bad.seconds == ()


def test_a_slow_candidate_is_stopped_after_one_run_and_keeps_its_time(runner):
    good, slow = runner.measure(
        TASK, [planted_state(DAG, "good"), planted_state(DAG, "slow")], incumbent_s=None
    )
    assert good.ok and len(good.seconds) >= 3 and good.median_s > 0
    assert slow.kind is TrialKind.SLOW
    assert len(slow.seconds) == 1 and slow.median_s > 3 * good.median_s
    assert good.max_error == 0 and good.object_digest
    assert runner.built(good.object_digest) is not None


def test_finalists_are_timed_in_turns(runner):
    states = [planted_state(DAG, kind) for kind in ("slow", "good", "good too")]
    slow, good, other = runner.retime(TASK, states)
    assert slow.ok and good.ok and other.ok
    assert len(slow.seconds) == len(good.seconds) == 5
    assert good.median_s < slow.median_s


def test_rounds_end_before_the_time_is_up(tmp_path):
    states = [planted_state(DAG, kind) for kind in ("good", "good too")]
    options = MeasureOptions(policy=TimingPolicy(turns_s=1e9, rounds=10**6), lock_folder=tmp_path)
    with LocalRunner(options, PlantedBuilder()) as runner:
        assert all(result.ok for result in runner.measure(TASK, states, incumbent_s=None))
        with until(time.monotonic() + 1.0):
            results = runner.retime(TASK, states)
    assert [result.kind for result in results] == [TrialKind.OK] * 2
    assert 1 <= len(results[0].seconds) == len(results[1].seconds) < 10**6


def test_a_reference_the_interpreter_contradicts_stops_everything(tmp_path):
    tripling = ComputeDAG.of(
        [a := placeholder((1237,), name="A"), compute((1237,), lambda i: a[i] * 3.0, name="C")]
    )
    state = planted_state(tripling, "good")
    with (
        LocalRunner(MeasureOptions(lock_folder=tmp_path), PlantedBuilder()) as runner,
        pytest.raises(VerificationFailed, match="the interpreter.s is"),
    ):
        runner.measure(task_of(tripling), [state], incumbent_s=None)


def test_recorded_trials_are_not_run_again_and_winners_keep_their_code(runner, tmp_path):
    kinds = ["good too", "wrong", "null", "good", "slow"]
    states = [planted_state(DAG, kind) for kind in kinds]
    ends: list[TrialEnd] = []
    with Database(tmp_path / "tune.db") as db:
        first = measure_recorded(runner, db, TASK, states[:3], ends.append)
        both = measure_recorded(runner, db, TASK, states, ends.append)
        assert both[:3] == first
        assert [end.state for end in ends] == [*states[:3], *states]
        assert [end.is_own for end in ends] == [True] * 3 + [False] * 3 + [True] * 2
        assert [end.record and end.record.result for end in ends] == [*first, *both]
        assert db.trials(TASK.key) == 5
        best = db.best(TASK.key)
        assert best is not None
        built = db.objects.get(best.object_digest)
        assert built is not None and built.digest == best.object_digest


def test_a_search_that_goes_on_compares_with_the_best_that_is_recorded(tmp_path):
    class Comparing(LocalRunner):
        def compare_with(self, task: Task, known: Callable[[], tuple[Built, float] | None]) -> None:
            compared.append(known())
            super().compare_with(task, known)

    compared: list[tuple[Built, float] | None] = []
    first, second = (planted_state(DAG, kind) for kind in ("good", "good too"))
    with Database(tmp_path / "tune.db") as db:
        for state in (first, second):
            with Comparing(MeasureOptions(lock_folder=tmp_path), PlantedBuilder()) as runner:
                (result,) = measure_recorded(runner, db, TASK, [state])
                assert result.ok
        (found,) = compared
        recorded = db.lookup(TASK, first)
        assert found is not None and recorded is not None
        assert (found[0].digest, found[1]) == (recorded.object_digest, recorded.median_s)


def test_a_recorded_program_that_does_not_run_is_not_compared_with(tmp_path):
    with LocalRunner(MeasureOptions(lock_folder=tmp_path), PlantedBuilder()) as runner:
        runner.compare_with(TASK, lambda: (planted("error code"), 1e-3))
        results = runner.measure(TASK, [planted_state(DAG, "good")] * 2, incumbent_s=None)
        assert all(result.ok for result in results), [result.reason for result in results]


def test_a_program_without_rivals_is_timed_in_full(runner, tmp_path):
    slow = planted_state(DAG, "slow")
    for in_full, kind in ((False, TrialKind.SLOW), (True, TrialKind.OK)):
        with Database(tmp_path / f"{kind.value}.db") as db:
            record = db.start(TASK, planted_state(DAG, "good"))
            db.complete(record, MeasureResult(TrialKind.OK, (1e-9,)))
            (result,) = measure_recorded(runner, db, TASK, [slow], in_full=in_full)
            assert result.kind is kind
            known = db.lookup(TASK, slow)
            assert known is not None and known.result.kind is kind


def test_damaged_object_code_counts_as_missing(runner, tmp_path):
    path = tmp_path / "tune.db"
    with Database(path) as db:
        (result,) = measure_recorded(runner, db, TASK, [planted_state(DAG, "good")])
        with sqlite3.connect(path) as raw:
            raw.execute("UPDATE objects SET code = substr(code, 1, 100) || zeroblob(8)")
        raw.close()
        assert db.objects.get(result.object_digest) is None
        assert db.objects.bytes == 0


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_real_schedules_are_built_checked_and_timed(real, constant, threads):
    dag = matmul(37, 53, 29, constant=constant)
    task = task_of(dag, threads, reuse_distance_bytes=1 << 27 if constant else 0)
    plain = tiled(dag)
    better, (outer, _) = plain.split("C", "j", (16,))
    better = better.parallel("C", [better.stage("C").iters[0]])
    states = [plain, tiled(dag, 4), better]
    if constant:
        states.append(plain.pack("C", "B"))
    results = real.measure(task, states, incumbent_s=None)
    for result in results:
        assert result.kind in (TrialKind.OK, TrialKind.SLOW), result.reason
        assert result.max_error < 1e-5 and result.build_s > 0 and result.run_s > 0
    again = real.build(task, states[:1])
    assert getattr(again[0], "digest", None) == results[0].object_digest


RECORDED = ("good", "wrong", "hang", "good too")
DRIVER = """
import sys
from pathlib import Path
from ansorpy.measure.build.built import Built
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.recording import measure_recorded
from ansorpy.measure.run.runner import LocalRunner, MeasureOptions
from tests.measure.planted import PlantedBuilder, doubling, planted_state
from tests.measure.definitions import task_of
dag = doubling()
folder = Path(sys.argv[1])
runner = LocalRunner(MeasureOptions(run_timeout_s=60.0, lock_folder=folder), PlantedBuilder())
states = [planted_state(dag, kind) for kind in sys.argv[2:]]
measure_recorded(
    runner, Database(folder / "tune.db"), task_of(dag), states,
    lambda e: print(states.index(e.state), e.result.kind.value, not e.is_own, flush=True),
)
"""


def run_driver(folder: Path) -> tuple[subprocess.Popen[str], list[list[str]]]:
    process = subprocess.Popen(
        [sys.executable, "-c", BARE + DRIVER, str(folder), *RECORDED],
        stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": ROOT, "ANSORPY_TEST_RUN": str(folder)},
    )  # fmt: skip
    assert process.stdout is not None
    return process, [process.stdout.readline().split() for _ in range(2)]


def attempts(path: Path) -> int:
    """How often the trial under way was started."""
    with closing(sqlite3.connect(path)) as raw:
        under_way = "id NOT IN (SELECT trial FROM results)"
        row = raw.execute(f"SELECT attempts FROM trials WHERE {under_way}").fetchone()
    return int(row[0]) if row else 0


def has_attempts(path, number):
    return attempts(path) == number


def started_by(folder: Path, parent: int | None = None) -> set[str]:
    """Every live process of the driver of *folder*; if given, only those *parent* has."""
    mark = f"ANSORPY_TEST_RUN={folder}".encode()
    found = set()
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if not entry.name.isdecimal():
                continue
            state = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            marked = mark in (entry / "environ").read_bytes().split(b"\0")
            if marked and parent in (None, int(state[1])):
                found.add(process_identity(int(entry.name)))
    return {identity for identity in found if is_running(identity)}


def none_left(folder):
    return not started_by(folder)


def test_a_killed_tuner_leaves_whole_records_no_orphan_and_goes_on(tmp_path):
    path = tmp_path / "tune.db"
    for attempt, known in ((1, "False"), (2, "True")):
        process, lines = run_driver(tmp_path)
        assert comes_true(partial(has_attempts, path, attempt))
        assert process_identity(process.pid) in started_by(tmp_path)
        assert len(started_by(tmp_path)) > 1
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert comes_true(partial(none_left, tmp_path))
        assert lines == [["0", "ok", known], ["1", "wrong_result", known]]
    states, ends = [planted_state(DAG, kind) for kind in RECORDED], list[TrialEnd]()
    options = MeasureOptions(run_timeout_s=60.0, lock_folder=tmp_path)
    with LocalRunner(options, PlantedBuilder()) as runner, Database(path) as db:
        measure_recorded(runner, db, TASK, states, ends.append)
    found = [(states.index(end.state), end.result.kind, end.is_own) for end in ends]
    assert found[2:] == [(2, TrialKind.CRASH, False), (3, TrialKind.OK, True)]
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert raw.execute("SELECT count(*) FROM trials").fetchone() == (4,)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_takes_back_the_trial_under_way_and_nothing_else(tmp_path):
    # A wrong one first: without a known time the second may hang for the whole timeout.
    states = [planted_state(DAG, kind) for kind in ("wrong", "hang", "good")]
    path = tmp_path / "tune.db"

    def interrupt_the_next(end: TrialEnd) -> None:
        threading.Thread(target=interrupt_when_started).start()

    def interrupt_when_started() -> None:
        assert comes_true(partial(has_attempts, path, 1))
        os.kill(os.getpid(), signal.SIGINT)

    options = MeasureOptions(run_timeout_s=60.0, lock_folder=tmp_path)
    with LocalRunner(options, PlantedBuilder()) as patient, Database(path) as db:
        with pytest.raises(KeyboardInterrupt):
            measure_recorded(patient, db, TASK, states, interrupt_the_next)
        assert db.trials(TASK.key) == 1
        assert [db.lookup(TASK, state) is None for state in states] == [False, True, True]
        wrong, good = measure_recorded(patient, db, TASK, [states[0], states[2]])
        assert wrong.kind is TrialKind.WRONG_RESULT and good.ok


def test_a_trial_whose_result_cannot_be_recorded_is_taken_back(runner, tmp_path, monkeypatch):
    state = planted_state(DAG, "good")

    def full(*_: object) -> None:
        raise ForeignFile("the disk is full")

    for _ in range(2):
        with Database(tmp_path / "tune.db") as db, monkeypatch.context() as failing:
            failing.setattr(db, "complete", full)
            with pytest.raises(ForeignFile, match="the disk is full"):
                measure_recorded(runner, db, TASK, [state])
    with Database(tmp_path / "tune.db") as db:
        [result] = measure_recorded(runner, db, TASK, [state])
        assert result.ok, "it counts as one that killed its driver twice"


def test_candidates_whose_every_element_is_rounding_are_right(real: LocalRunner) -> None:
    """Sums in parts are other roundings than the reference's."""
    dag = cancelled()
    state, (_, inner) = State.initial(dag).split("P", "r", (8,))
    parts, _ = state.rfactor("P", inner, 2)
    states = [State.initial(dag), state, parts]
    for state in states:
        [result] = real.measure(task_of(dag), [state], incumbent_s=None)
        assert result.ok, result.reason


@pytest.mark.parametrize("shared", [False, True])
def test_a_deadline_cuts_the_wait_for_others_on_the_cores(tmp_path: Path, shared: bool) -> None:
    """Another's timing holds up builds; another's computing only runs."""
    states = [planted_state(DAG, kind) for kind in ("good", "wrong")]
    options = MeasureOptions(lock_folder=tmp_path)
    cores = sorted(os.sched_getaffinity(0))
    results: list[list[MeasureResult] | None] = []
    computed: list[bool] = []

    def work(runner: LocalRunner) -> None:
        with until(time.monotonic() + 0.5):
            results.append(runner.measure(TASK, states, incumbent_s=None))
            results.append(runner.retime(TASK, states))
            with runner.computing():
                computed.append(True)

    builder = PlantedBuilder() if shared else None
    with LocalRunner(options, builder) as runner:
        if shared:
            runner.measure(TASK, states[:1], incumbent_s=None)  # makes the reference
        thread = threading.Thread(target=work, args=(runner,))
        with lock_cores(cores, tmp_path, shared=shared):
            thread.start()
            thread.join(20)
            assert not thread.is_alive()
    for found in results:
        assert found is not None and [r.kind for r in found] == [TrialKind.CUT] * 2
    assert len(results) == 2 and computed


def test_what_is_not_built_waits_for_no_cores_and_stays_a_failure(tmp_path: Path) -> None:
    class Refusing(PlantedBuilder):
        def build(self, task: Task, states: Sequence[State]) -> list[Built | MeasureResult]:
            refused = MeasureResult(TrialKind.BUILD_ERROR, reason="refused")
            builds = super().build(task, states)
            return [refused if build is planted("wrong") else build for build in builds]

    states = [planted_state(DAG, kind) for kind in ("wrong", "good")]
    with LocalRunner(MeasureOptions(lock_folder=tmp_path), Refusing()) as runner:
        runner.measure(TASK, states[1:], incumbent_s=None)  # makes the reference
        with lock_cores(usable_cores(), tmp_path), until(time.monotonic() + 0.5):
            found = [
                *runner.measure(TASK, states[:1], incumbent_s=None),
                *runner.retime(TASK, states[:1]),
                *runner.retime(TASK, states),
            ]
    assert [result.kind for result in found] == [TrialKind.BUILD_ERROR] * 3 + [TrialKind.CUT]


def test_a_deadline_cuts_a_hanging_candidate_which_is_not_recorded(tmp_path):
    # A wrong one first: without a known time the second may hang for the whole timeout.
    states = [planted_state(DAG, kind) for kind in ("wrong", "hang", "good")]
    ends: list[TrialEnd] = []
    options = MeasureOptions(run_timeout_s=300.0, lock_folder=tmp_path)
    with LocalRunner(options, PlantedBuilder()) as runner, Database(tmp_path / "tune.db") as db:
        measure_recorded(runner, db, TASK, states[:1])
        with until(time.monotonic() + 0.7):
            results = measure_recorded(runner, db, TASK, states, ends.append)
        assert [r.kind for r in results] == [
            TrialKind.WRONG_RESULT, TrialKind.CUT, TrialKind.CUT,
        ]  # fmt: skip
        assert [end.result for end in ends] == results
        assert [end.record is None for end in ends] == [end.is_own for end in ends] == [0, 1, 1]
        assert [db.lookup(TASK, state) is None for state in states] == [False, True, True]
        [good] = measure_recorded(runner, db, TASK, states[2:])
        assert good.ok and db.trials(TASK.key) == 2


def test_under_a_deadline_some_run_before_the_others_are_built(tmp_path):
    ended: list[TrialKind] = []

    class LateBuilder(PlantedBuilder):
        """There is no time to build more than the first batch of candidates and the reference."""

        def build(self, task: Task, states: Sequence[State]) -> list[Built | MeasureResult]:
            return [out_of_time()] * len(states) if ended else super().build(task, states)

    class Ends:
        def started(self, state: State) -> None:
            return None

        def ended(self, end: TrialEnd) -> None:
            ended.append(end.result.kind)

    states = [planted_state(DAG, kind) for kind in ("wrong", "good", "good too", "slow")]
    options = MeasureOptions(builders=2, lock_folder=tmp_path)
    with LocalRunner(options, LateBuilder()) as runner, until(time.monotonic() + 300):
        runner.measure(TASK, states, incumbent_s=None, observer=Ends())
    cut = TrialKind.CUT
    assert ended == [TrialKind.WRONG_RESULT, TrialKind.OK, cut, cut]


def test_there_may_be_no_time_for_a_reference_or_for_the_finalists(tmp_path):
    states = [planted_state(DAG, kind) for kind in ("good", "good too")]
    with LocalRunner(MeasureOptions(lock_folder=tmp_path), PlantedBuilder()) as runner:
        with until(time.monotonic()):
            cut = runner.measure(TASK, states, incumbent_s=None)
        assert {r.kind for r in cut} == {TrialKind.CUT}
        assert all(r.ok for r in runner.measure(TASK, states, incumbent_s=None))
        with until(time.monotonic()):
            cut = runner.retime(TASK, states)
        assert {r.kind for r in cut} == {TrialKind.CUT}


def test_code_for_another_kind_of_machine_is_refused(runner):
    task = Task(DAG, Target.parse("cortex-a76"), 1)
    with pytest.raises(UsageError, match="cortex-a76 cannot be timed on this machine"):
        runner.measure(task, [planted_state(DAG, "good")], incumbent_s=None)


def test_equal_definitions_with_other_names_have_references_of_their_own(real):
    for a_name, c_name in (("A", "C"), ("X", "Y"), ("A", "C")):
        task = task_of(doubling(a_name, c_name))
        (result,) = real.measure(task, [State.initial(task.dag)], incumbent_s=None)
        assert result.ok, result.reason


def test_inputs_are_the_same_in_every_worker(runner):
    good = planted_state(DAG, "good")
    first = runner.measure(TASK, [good], incumbent_s=None)[0]
    [worker] = runner.workers
    worker.kill()
    second = runner.measure(TASK, [good], incumbent_s=None)[0]
    assert first.ok and second.ok
    assert np.isfinite([first.median_s, second.median_s]).all()


def test_a_read_out_of_bounds_is_named_before_compiled_code_does_it(real):
    x = placeholder((4, 8), name="x")
    far = compute((4096, 8192), lambda i, j: x[i, j], name="far")
    dag = ComputeDAG([far])
    with pytest.raises(VerificationFailed, match='"x" is read at .* in dimension 0, which has 4'):
        real.measure(task_of(dag), [State.initial(dag)], incumbent_s=None)


def test_a_long_sum_is_judged_by_an_exact_reference(real):
    """Added up one after the other, squares of normals lack 0.2 % of their sum."""
    x, k = placeholder((1 << 22,), name="x"), reduce_axis(1 << 22, name="k")
    total = compute((1,), lambda i: sum_over(x[k] * x[k], axis=k), name="total")
    task = task_of(ComputeDAG.of([x, total]))
    state = State.initial(task.dag)
    split, (_, inner) = state.split("total", "k", (1 << 11,))
    split, _ = split.rfactor("total", inner)
    in_order, in_parts = real.measure(task, [state, split], incumbent_s=None)
    assert in_order.kind is TrialKind.WRONG_RESULT and in_order.max_error > 1e-3
    assert in_parts.ok and in_parts.max_error < 1e-5


def test_tasks_may_alternate(runner):
    other = doubling()
    named = Task(other, TASK.target, 1, precision="strict", name="other")
    for task, dag in ((TASK, DAG), (named, other), (TASK, DAG)):
        assert runner.measure(task, [planted_state(dag, "good")], incumbent_s=None)[0].ok


def test_what_is_expected_is_ready_when_it_is_asked_for(real: LocalRunner) -> None:
    task = task_of(matmul())
    state = tiled(task.dag, 4)
    real.expect(task, [state])
    [result] = real.measure(task, [state], incumbent_s=None)
    assert result.ok
    wrong = task_of(
        ComputeDAG.of([a := placeholder((4,), name="A"), compute((4,), lambda i: a[i], name="C")])
    )
    real.expect(wrong, [state])  # a schedule of something else: it fails when it is measured
    [failed] = real.measure(wrong, [state], incumbent_s=None)
    assert not failed.ok


def test_as_many_builds_are_kept_as_the_options_say(tmp_path: Path) -> None:
    task = task_of(matmul())
    first, second = tiled(task.dag, 2), tiled(task.dag, 4)
    with LocalRunner(MeasureOptions(kept_builds=1, lock_folder=tmp_path)) as runner:
        for state in (first, second, first, first):
            runner.build(task, [state])
        assert len(runner.take_build_times()) == 3


class HeldUp:
    """Builds nothing, and not before it is let."""

    def __init__(self) -> None:
        self.begun, self.let = threading.Event(), threading.Event()

    def build(self, task: Task, states: Sequence[State]) -> list[Built | MeasureResult]:
        self.begun.set()
        assert self.let.wait(10)
        return []

    def close(self) -> None:
        """Nothing is held."""


def test_timing_waits_for_what_computes_beside_builds(tmp_path: Path) -> None:
    work = Future[None]()
    with LocalRunner(MeasureOptions(lock_folder=tmp_path), PlantedBuilder()) as local:
        local.time_after(work)
        with until(time.monotonic() + 0.2):
            [cut] = local.measure(TASK, [planted_state(DAG, "good")], incumbent_s=None)
        assert cut.kind is TrialKind.CUT
        threading.Timer(0.2, work.set_result, [None]).start()
        [timed] = local.measure(TASK, [planted_state(DAG, "good")], incumbent_s=None)
        assert timed.ok and work.done()


def test_leaving_makes_no_reference_any_more() -> None:
    builder, task = HeldUp(), task_of(matmul())
    runner = LocalRunner(builder=builder)
    runner.expect(task, [])
    assert builder.begun.wait(10)
    leaving = threading.Thread(target=runner.close)
    leaving.start()
    while not runner.is_closing:
        time.sleep(0.001)
    builder.let.set()
    leaving.join(10)
    assert not leaving.is_alive() and not runner.workers


class OneByOne(HeldUp):
    """Finishes two builds, the second after it is let, and notes when it is asked for more."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked_on = False

    def build(self, task: Task, states: Sequence[State]) -> list[Built | MeasureResult]:
        return [result for _, result in self.build_each(task, states)]

    def build_each(
        self, task: Task, states: Sequence[State]
    ) -> Iterator[tuple[int, Built | MeasureResult]]:
        yield 0, out_of_time()
        self.begun.set()
        assert self.let.wait(10)
        yield 1, out_of_time()
        self.is_asked_on = True


def test_leaving_waits_for_one_build_at_most() -> None:
    builder, task = OneByOne(), task_of(matmul())
    runner = LocalRunner(builder=builder)
    runner.expect(task, [tiled(task.dag, 2)])
    assert builder.begun.wait(10)
    leaving = threading.Thread(target=runner.close)
    leaving.start()
    while not runner.is_closing:
        time.sleep(0.001)
    builder.let.set()
    leaving.join(10)
    assert not leaving.is_alive() and not builder.is_asked_on


def test_what_is_expected_has_the_deadline_of_its_caller() -> None:
    found: list[float] = []

    class Hurried(HeldUp):
        def build(self, task: Task, states: Sequence[State]) -> list[Built | MeasureResult]:
            found.append(left_s())
            return [out_of_time()] * len(states)

    task = task_of(matmul())
    with LocalRunner(builder=Hurried()) as runner:
        with until(time.monotonic() + 30.0):
            runner.expect(task, [tiled(task.dag, 2)])
        runner.build(task, [])
    expected, asked = found[0], found[-1]
    assert expected <= 30.0 and asked == inf


def test_leaving_forgets_what_was_expected(tmp_path: Path) -> None:
    task = task_of(matmul())
    begin = time.monotonic()
    with LocalRunner(MeasureOptions(lock_folder=tmp_path)) as runner:
        for n in range(2, 40):
            runner.expect(task, [tiled(task.dag, n)])
    assert time.monotonic() - begin < 20
