"""Candidates on (simulated) GPUs, in real workers: whatever one does is its result."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from threading import Event

import pytest

from ansorpy.errors import AnsorpyError, MissingDependency
from ansorpy.measure.gpu.batch import GpuBatch
from ansorpy.measure.gpu.runner import Gpu, GpuRunner
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.recording import measure_recorded
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.run import client
from ansorpy.measure.run.runner import MeasureOptions
from ansorpy.measure.run.timing import TimingPolicy
from ansorpy.measure.trial_end import TrialEnd
from ansorpy.measure.workers import locks
from ansorpy.schedule.state import State
from tests.measure.definitions import matmul, task_of, tiled
from tests.measure.gpu.simulated import SimulatedBuilder, doubling, gpu_task

DAG = doubling()
TASK = gpu_task(DAG)
BUILDER = SimulatedBuilder()
PLACES = ("0000:01:00.0", "0000:81:00.0")


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuRunner]:
    folder, policy = tmp_path_factory.mktemp("locks"), TimingPolicy(rounds=5)
    options = MeasureOptions(run_timeout_s=0.4, policy=policy, lock_folder=folder)
    gpus = [Gpu(number, place) for number, place in enumerate(PLACES)]
    module = "tests.measure.gpu.simulated"
    with (
        pytest.MonkeyPatch.context() as patch,
        GpuRunner(gpus, options, BUILDER, module=module) as runner,
    ):
        patch.setattr(client, "CREDIT_S", 1.0)  # what hangs ends sooner
        yield runner


@pytest.mark.parametrize(
    ("fault", "want", "reason"),
    [
        ("wrong", TrialKind.WRONG_RESULT, "of the largest value"),
        ("writes beyond", TrialKind.RUN_ERROR, "wrote outside its outputs"),
        ("writes its input", TrialKind.RUN_ERROR, "wrote to its input A"),
        ("refused", TrialKind.RUN_ERROR, "too many resources"),
        ("illegal access", TrialKind.CRASH, "context is lost: an illegal memory access"),
        ("hangs", TrialKind.TIMEOUT, "no answer within"),
    ],
)
def test_a_bad_candidate_is_a_result_and_the_next_are_measured(runner, fault, want, reason):
    states = [BUILDER.state(DAG, kind) for kind in ("", fault, "", "")]
    good, bad, *after = runner.measure(TASK, states, incumbent_s=None)
    assert bad.kind is want, bad.reason
    assert reason in bad.reason and bad.seconds == ()
    for result in (good, *after):
        assert result.ok and result.median_s == pytest.approx(0.002), result.reason
        assert result.max_error == 0 and result.build_s > 0


def test_gpus_share_the_candidates_and_the_observer_hears_of_each(runner):
    heard: list[tuple[str, int]] = []
    states = [BUILDER.state(DAG, "") for _ in range(4)]

    class Listening:
        def started(self, state: State) -> MeasureResult | None:
            heard.append(("started", states.index(state)))
            return MeasureResult(TrialKind.OK, (1.0,)) if state is states[2] else None

        def ended(self, end: TrialEnd) -> None:
            assert end.result.ok and end.built is not None
            heard.append(("ended", states.index(end.state)))

    results = runner.measure(TASK, states, incumbent_s=None, observer=Listening())
    assert [result.median_s == 1.0 for result in results] == [False, False, True, False]
    assert heard[:2] == [("started", 0), ("started", 1)]  # one for each GPU, at once
    assert sorted(heard) == sorted(
        [*(("started", n) for n in range(4)), *(("ended", n) for n in (0, 1, 3))]
    )
    assert len({worker.pid for worker in runner.workers[:4]}) == 4


def test_what_the_observer_knows_is_a_time_to_beat():
    incumbents: list[float | None] = []

    class Knowing:
        def started(self, state: State) -> MeasureResult | None:
            return MeasureResult(TrialKind.OK, (0.5,)) if state is known else None

        def ended(self, end: TrialEnd) -> None:
            assert end.result.ok

    def submit(client, state, built, incumbent_s):
        incumbents.append(incumbent_s)
        done = Future[MeasureResult]()
        done.set_result(MeasureResult(TrialKind.OK, (1.0,)))
        return done

    known, new = BUILDER.state(DAG, ""), BUILDER.state(DAG, "wrong")
    batch = GpuBatch([known, new], submit, 2.0, Knowing())
    builds = enumerate(BUILDER.build(TASK, [known, new]))
    results = batch.run([object()], builds)  # type: ignore[list-item]
    assert [result.median_s for result in results] == [0.5, 1.0] and incumbents == [0.5]


def test_finalists_are_timed_in_turns(runner):
    states = [BUILDER.state(DAG, ""), BUILDER.state(DAG, "")]
    results = runner.retime(TASK, states)
    assert all(result.ok and len(result.seconds) == 5 for result in results)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[GpuRunner]:
    """A runner with a single GPU."""
    options = MeasureOptions(run_timeout_s=1.0, lock_folder=tmp_path)
    module = "tests.measure.gpu.simulated"
    with GpuRunner([Gpu(0, PLACES[0])], options, BUILDER, module=module) as runner:
        yield runner


def test_only_a_lost_context_costs_the_worker(alone):
    def measured(fault: str) -> tuple[MeasureResult, int | None]:
        [result] = alone.measure(TASK, [BUILDER.state(DAG, fault)], incumbent_s=None)
        return result, alone.workers[0].pid

    result, first = measured("")
    assert result.ok
    for fault in ("wrong", "refused", "writes beyond", "writes its input", "writes before"):
        result, pid = measured(fault)
        assert not result.ok and pid == first, fault
        assert measured("")[0].ok, fault
    assert measured("illegal access")[0].kind is TrialKind.CRASH
    result, pid = measured("")
    assert result.ok and pid != first


def test_a_spare_worker_takes_over_from_one_that_lost_its_gpu(alone):
    spare = alone.workers[1]
    states = [BUILDER.state(DAG, fault) for fault in ("", "illegal access", "")]
    alone.measure(TASK, states[:1], incumbent_s=None)
    assert spare.is_ready and spare.generation == 1
    first, ready = alone.workers[0].pid, spare.pid
    results = alone.measure(TASK, states, incumbent_s=None)
    assert [result.kind for result in results] == [TrialKind.OK, TrialKind.CRASH, TrialKind.OK]
    assert alone.workers[0] is spare and spare.pid == ready
    alone.measure(TASK, states[:1], incumbent_s=None)
    # Another one waits, started while the candidates of the next batch were built.
    assert alone.workers[1].is_ready and alone.workers[1].pid not in (first, ready)


def test_without_a_spare_the_worker_itself_starts_again(alone, monkeypatch, caplog):
    spare = alone.workers[1]

    def refused() -> None:
        raise AnsorpyError("a measurement worker cannot start: GPU 0 is used by another process")

    monkeypatch.setattr(spare, "make_ready", refused)
    states = [BUILDER.state(DAG, fault) for fault in ("illegal access", "")]
    results = alone.measure(TASK, states, incumbent_s=None)
    assert [result.kind for result in results] == [TrialKind.CRASH, TrialKind.OK]
    assert spare not in alone.workers and not spare.is_alive
    assert "GPU 0 is used by another process" in caplog.text


def test_a_finalist_that_is_refused_costs_no_worker(runner):
    before = runner.workers[0].pid
    results = runner.retime(TASK, [BUILDER.state(DAG, "refused"), BUILDER.state(DAG, "")])
    assert [result.kind for result in results] == [TrialKind.RUN_ERROR] * 2
    assert "too many resources" in results[0].reason
    [result] = runner.measure(TASK, [BUILDER.state(DAG, "")], incumbent_s=None)
    assert result.ok and runner.workers[0].pid == before


def test_all_workers_start_at_once_and_builds_have_times(tmp_path):
    options = MeasureOptions(builders=2, lock_folder=tmp_path)
    module = "tests.measure.gpu.simulated"
    with GpuRunner([Gpu(0, PLACES[0])], options, module=module) as runner:
        workers = runner.workers
        assert len(workers) == 5 and all(worker.is_alive for worker in workers)
        dag = matmul()
        runner.build(task_of(dag), [tiled(dag)])
        [(begin, end)] = runner.take_build_times()
        assert begin < end
    assert not any(worker.is_alive for worker in workers)


def test_trials_are_recorded_and_winners_keep_their_code(runner, tmp_path):
    states = [BUILDER.state(DAG, fault) for fault in ("", "illegal access", "wrong")]
    with Database(tmp_path / "tune.db") as db:
        first = measure_recorded(runner, db, TASK, states)
        assert [result.kind for result in first] == [
            TrialKind.OK, TrialKind.CRASH, TrialKind.WRONG_RESULT,
        ]  # fmt: skip
        assert measure_recorded(runner, db, TASK, states) == first
        best = db.best(TASK.key)
        assert best is not None
        built = db.objects.get(best.object_digest)
        assert built is not None and built.run.code == runner.built(built.digest).run.code


def test_a_candidate_runs_while_the_next_is_still_being_built(tmp_path):
    states = [BUILDER.state(DAG, "") for _ in range(3)]
    ended: list[int] = []
    has_ended = Event()

    class Slow(SimulatedBuilder):
        def build_each(self, task, candidates):
            yield 1, self._built(task, candidates[1])
            assert has_ended.wait(20), "the first candidate waits for the others to be built"
            yield from ((n, self._built(task, candidates[n])) for n in (2, 0))

    class Listening:
        def started(self, state):
            return None

        def ended(self, end):
            ended.append(states.index(end.state))
            has_ended.set()

    options = MeasureOptions(lock_folder=tmp_path)
    module = "tests.measure.gpu.simulated"
    with GpuRunner([Gpu(0, PLACES[0])], options, Slow(), module=module) as runner:
        results = runner.measure(TASK, states, incumbent_s=None, observer=Listening())
    assert ended == [1, 2, 0] and all(result.ok for result in results)


def test_builds_that_fail_fail_the_measurement(tmp_path):
    class Broken(SimulatedBuilder):
        def build_each(self, task, candidates):
            yield 0, self._built(task, candidates[0])
            raise AnsorpyError("no builder answers")

    module, options = "tests.measure.gpu.simulated", MeasureOptions(lock_folder=tmp_path)
    with GpuRunner([Gpu(0, PLACES[0])], options, Broken(), module=module) as runner:
        states = [BUILDER.state(DAG, "") for _ in range(2)]
        with pytest.raises(AnsorpyError, match="no builder answers"):
            runner.measure(TASK, states, incumbent_s=None)


def test_a_gpu_is_locked_while_something_is_timed(runner, monkeypatch):
    held: list[list[str]] = []
    taken = locks.lock_gpus

    def locked(places, folder):
        held.append(list(places))
        return taken(places, folder)

    monkeypatch.setattr("ansorpy.measure.gpu.runner.lock_gpus", locked)
    state = BUILDER.state(DAG, "")
    runner.measure(TASK, [state], incumbent_s=None)
    runner.retime(TASK, [state])
    assert held == [[PLACES[0]], list(PLACES)]
    folder: Path = runner.options.lock_folder
    assert (folder / "ansorpy-gpu-0000-01-00-0.lock").exists()


def test_cold_constants_are_copied_past_the_cache(runner):
    task = gpu_task(doubling(constant=True), cold=True)
    states = [BUILDER.state(task.dag, "")]
    # Four times 40 MB over 7.5 KB: as many copies as are ever made.
    [result] = runner.measure(task, states, incumbent_s=None)
    assert result.ok, result.reason


def test_a_worker_without_a_gpu_or_cupy_says_what_it_lacks():
    from ansorpy.codegen.cuda.device.driver import CudaDevice, device_for
    from tests.codegen.cuda.simulated import GPU

    if GPU.gpus():
        pytest.skip("this machine has a GPU")
    with pytest.raises(MissingDependency, match="cupy, which is not installed|GPU 0 cannot be"):
        CudaDevice(0)
    with pytest.raises(MissingDependency, match="no GPU that runs code for sm_80"):
        device_for(GPU)
