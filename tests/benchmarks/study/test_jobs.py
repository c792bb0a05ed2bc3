"""Jobs: carried out once, within a budget; what fails is an outcome, too."""

from __future__ import annotations

import os
import signal
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from time import monotonic, sleep

import pytest

from ansorpy.errors import MissingDependency, UsageError
from ansorpy.measure.workers.processes import is_running, process_identity
from benchmarks.study.jobs import Job, carry_out
from benchmarks.study.outcomes import Conditions, Outcomes, Value

HERE = Conditions("1+abc", "this one")


def work(x: int) -> Value:
    if x == 13:
        raise UsageError("no thirteen")
    return {"square": x * x, "process": os.getpid()}


def broken() -> Value:
    raise ZeroDivisionError("by me")


def lacking() -> Value:
    raise MissingDependency("it needs torch", hint="pip install torch")


def dying() -> Value:
    os._exit(1)


def ending_the_study(told: Path) -> Value:
    told.write_text(process_identity(), encoding="utf-8")
    os.kill(os.getppid(), signal.SIGTERM)
    sleep(60.0)
    return {}


def study(folder: Path) -> None:
    job = Job("a", partial(ending_the_study, folder / "told"), alone=True)
    carry_out([job], Outcomes(folder / "outcomes.jsonl", HERE), 60.0, 1, print)


@pytest.fixture
def outcomes(tmp_path: Path) -> Outcomes:
    return Outcomes(tmp_path / "outcomes.jsonl", HERE)


def test_jobs_run_once(outcomes: Outcomes) -> None:
    jobs = [Job(f"square/{x}", partial(work, x)) for x in (2, 13, 3)]
    said: list[str] = []
    assert carry_out(jobs, outcomes, 60.0, 1, said.append) == 0
    assert outcomes.value("square/2") == {"square": 4, "process": os.getpid()}
    assert outcomes.failures("square") == {"square/13": "no thirteen"}
    assert said[0] == "0 of 3 jobs are done" and "square/13: no thirteen" in said
    assert carry_out(jobs, outcomes, 60.0, 1, said.append) == 0
    assert said[-1] == "3 of 3 jobs are done"


def test_a_part_of_users_may_raise_anything(outcomes: Outcomes) -> None:
    assert carry_out([Job("a", broken)], outcomes, 60.0, 1, lambda line: None) == 0
    assert outcomes.failures("a") == {"a": "ZeroDivisionError: by me"}


def test_what_needs_a_missing_package_is_left(outcomes: Outcomes) -> None:
    said: list[str] = []
    jobs = [Job("a", lacking), Job("b", partial(work, 2))]
    assert carry_out(jobs, outcomes, 60.0, 1, said.append) == 1
    assert "a" not in outcomes and "b" in outcomes
    assert "a: it needs torch; pip install torch" in said


def test_nothing_begins_after_the_budget(outcomes: Outcomes) -> None:
    jobs = [Job("a", partial(work, 2)), Job("b", partial(work, 3), alone=True, about_s=100.0)]
    assert carry_out(jobs, outcomes, 0.0, 1, lambda line: None) == 2
    assert carry_out(jobs, outcomes, 50.0, 1, lambda line: None) == 1
    assert "a" in outcomes and "b" not in outcomes
    jobs.append(Job("c", partial(work, 4), alone=True))
    assert carry_out(jobs, outcomes, 50.0, 1, lambda line: None) == 2 and "c" not in outcomes


def test_what_times_programs_has_a_process_of_its_own(outcomes: Outcomes) -> None:
    said: list[str] = []
    jobs = [
        Job("alone/2", partial(work, 2), alone=True), Job("alone/0", dying, alone=True),
        Job("alone/1", lacking, alone=True),
    ]  # fmt: skip
    assert carry_out(jobs, outcomes, 60.0, 1, said.append) == 1
    assert "alone/1" not in outcomes
    assert "alone/1: it needs torch; pip install torch" in said
    value = outcomes.value("alone/2")
    assert value is not None and value["square"] == 4 and value["process"] != os.getpid()
    [found] = [o for o in outcomes if o.key == "alone/2"]
    assert found.others >= 0.0
    assert outcomes.failures("alone") == {"alone/0": "its process ended without an answer"}


def test_processes_end_with_their_study(tmp_path: Path) -> None:
    running = get_context("spawn").Process(target=study, args=(tmp_path,))
    running.start()
    running.join(60.0)
    assert running.exitcode == -signal.SIGTERM
    working, ends_at = (tmp_path / "told").read_text(encoding="utf-8"), monotonic() + 20.0
    while is_running(working) and monotonic() < ends_at:
        sleep(0.01)
    assert not is_running(working)
