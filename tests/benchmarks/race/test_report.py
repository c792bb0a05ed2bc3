"""The page, the bars and the pages of parts, from outcomes that are made up or replayed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.common.pages import marks
from benchmarks.race import live, metaschedule, schedulers, untuned
from benchmarks.race.__main__ import main, race
from benchmarks.race.contestant import Contestant, contestants
from benchmarks.race.part_pages import write_part_pages
from benchmarks.race.recorded import HARD
from benchmarks.spaces.catalogue import FOLDER
from benchmarks.spaces.grid import write_grid
from benchmarks.study.jobs import Job
from benchmarks.study.outcomes import Conditions, Outcome, Outcomes
from benchmarks.study.study import StudySettings, pages
from tests.benchmarks.spaces.grids import grid_of
from tests.search.tasks import matmul

DEFAULT = Contestant.default()
SMALL = StudySettings(only=("random",), seeds=2, threads=2)

Made = Callable[[Job, int], Mapping[str, Any]]


def curve(job: Job, number: int) -> Mapping[str, Any]:
    last = 1.0 + 0.1 * number
    return {"points": [(1.0, 4, 2.0 * last), (9.0, 30, last)], "trials": 40, "best_ms": last}


def final(job: Job, number: int) -> Mapping[str, Any]:
    names = [one.name for one in contestants("strategy", SMALL.only)]
    rng = np.random.default_rng(number)
    times = {n: (1.0 if n == DEFAULT.name else 2.0) * rng.lognormal(sigma=0.05) for n in names}
    return {"median_ms": times, "failures": {}}


MADE: Mapping[str, Made] = {
    "live": curve,
    "final": final,
    "untuned": lambda job, number: {"records": "x.db"},
    "untuned_final": lambda job, number: {
        "median_ms": {"analytic": 3.0, DEFAULT.cost_model: 2.0}, "failures": {}
    },
    "metaschedule": lambda job, number: {
        "seconds": 70.0, "version": "0", "library": "x.so", "functions": "one"
    },
    "beside": lambda job, number: {"median_ms": {"ansorpy": 0.5, "MetaSchedule": 0.6}},
    "curves": curve,
    "scheduled": lambda job, number: {"gradient": [10, 11], "round_robin": [20, 22]},
}  # fmt: skip


@pytest.fixture
def outcomes(tmp_path: Path) -> Outcomes:
    """Of every job that times something."""
    found = Outcomes(tmp_path / "outcomes.jsonl", Conditions("1+abc", "this one"))
    stages = (*live.STAGES, schedulers.STAGE, untuned.STAGE, metaschedule.STAGE)
    jobs = {job.key: job for stage in stages for job in stage.jobs(SMALL)}
    for number, (key, job) in enumerate(jobs.items()):
        assert job.alone
        value = dict(MADE[key.split("/")[0]](job, number))
        add(found, key, value)
    return found


def add(outcomes: Outcomes, key: str, value: dict[str, Any]) -> None:
    outcomes.add(Outcome.now(key, outcomes.conditions, value=value, seconds=1.0, others=0.0))


def test_a_page_without_results_says_so(tmp_path: Path) -> None:
    empty = Outcomes(tmp_path / "outcomes.jsonl", Conditions("1+abc", "this one"))
    study = race(tmp_path)
    written = pages(study, SMALL, empty)
    assert set(written) == {study.page, study.tables}
    text = written[study.page]
    assert text.count("No results yet: `python -m benchmarks.race") == len(study.stages)
    assert "missed" not in text and "| met |" not in text
    assert len(text.splitlines()) <= 200


def test_every_stage_has_its_section(outcomes: Outcomes, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="the library that draws charts is not installed")
    study = race(tmp_path)
    written = {path.name: text for path, text in pages(study, SMALL, outcomes).items()}
    text, tables = written.pop("race.md"), written.pop("race_tables.md")
    assert set(written) == {
        f"race_{name}.svg"
        for name in (
            "strategies", "strategies_curves", "networks", "networks_curves", "schedulers",
            "untuned",
        )
    }  # fmt: skip
    assert all(drawn.startswith("<svg") for drawn in written.values())
    assert f"{DEFAULT.strategy} (default) leads" in text
    assert "Without results: evolution_droplet, " in text
    assert "SOFTMAX.12x128x128 | 0.5 | 5s | 0.6 | 70s | one | 1.20 |" in tables
    assert "| ms after 300s | trials | s to within 10% |" in tables
    assert tables.count("| 40 | 9 | 9 | 9 |") == 2 * len(live.FIVE)
    assert "2 ms (1.50)" in tables and "this one; ansorpy 1+abc; 10 jobs, " in text
    assert max(len(text.splitlines()), len(tables.splitlines())) <= 200


def test_bars_are_met_or_missed(outcomes: Outcomes, tmp_path: Path) -> None:
    for space, before in HARD.items():
        for name in ("random:top_k:random:gradient", DEFAULT.name):
            for seed in range(2):
                key = f"recorded/512t/{space}/{name.rpartition(':')[0]}/{seed}"
                needed = before // 2 if space != "softmax" else before
                add(outcomes, key, {"trials_to": {"0.95": 1, "0.99": needed}, "trials": needed})
    settings = replace(SMALL, spaces=FOLDER)
    stages = race(tmp_path).stages
    bars = [bar for stage in stages for bar in stage.section(settings, outcomes).bars]
    met = {bar.what.split(",")[0]: bar.is_met for bar in bars}
    assert met == dict.fromkeys((*HARD, *metaschedule.SUBJECTS[:-1]), True) | {
        "softmax": False, f"speed by {DEFAULT.cost_model}": True
    }  # fmt: skip
    assert [bar.found for bar in bars if bar.asked == "above 1"] == ["1.50 over 5 networks"]
    assert {bar.found for bar in bars if bar.asked == "under 0.6, MetaSchedule's"} == {"0.5"}
    assert not any("least" in bar.found for bar in bars)  # of equals, the default


def test_a_bar_is_of_the_limits_that_are_asked_for(outcomes: Outcomes) -> None:
    section = metaschedule.STAGE.section
    assert all(bar.what.endswith("after 5s") for bar in section(SMALL, outcomes).bars)
    assert not section(replace(SMALL, trials=128, seconds=20.0), outcomes).bars


def test_a_stage_without_outcomes_keeps_its_section(outcomes: Outcomes, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="the library that draws charts is not installed")
    study = race(tmp_path)
    written = pages(study, SMALL, outcomes)
    for path, text in written.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    old = study.picture("of_before")
    old.write_text("<svg/>")
    assert main(["--stage", "report", "--outcomes", str(tmp_path / "none")], tmp_path) == 0
    assert {path: path.read_text() for path in written} == written and not old.exists()


def test_pages_of_parts_are_filled_again_and_again(outcomes: Outcomes, tmp_path: Path) -> None:
    begin, end = marks("benchmarks.race")
    for kind, name in (("strategies", "random"), ("transfers", "none"), ("selectors", "top_k")):
        (tmp_path / kind).mkdir()
        old = f"# {name}\n\n## What we saw\n\nNothing.\n\n## Further\n\nThe end.\n"
        (tmp_path / kind / f"{name}.md").write_text(old)
    assert len(write_part_pages(tmp_path, SMALL, outcomes)) == 3
    assert write_part_pages(tmp_path, SMALL, outcomes) == []
    text = (tmp_path / "strategies" / "random.md").read_text()
    assert text.count(begin) == text.count(end) == 1
    assert text.endswith(f"{end}\n\nNothing.\n\n## Further\n\nThe end.\n")
    assert f"| geometric means | `random` | `{DEFAULT.strategy}` | measured |\n" in text
    for where in ("on this machine", "networks"):
        [row] = [line for line in text.splitlines() if f"time / fastest, {where}" in line]
        assert row.endswith("| this one, 1+abc |") and 1.8 < float(row.split(" | ")[1]) < 2.2
    assert "Not raced" in (tmp_path / "transfers" / "none.md").read_text()
    assert "No results yet" in (tmp_path / "selectors" / "top_k.md").read_text()
    outcomes.forget([outcome.key for outcome in outcomes])
    assert write_part_pages(tmp_path, SMALL, outcomes) == []
    page = tmp_path / "strategies" / "random.md"
    assert page.read_text() == text
    row = "| what was measured once | 1 | 1 | here |\n"
    page.write_text(text.replace("| time /", f"{row}| time /", 1))
    assert write_part_pages(tmp_path, SMALL, outcomes) == [page] and page.read_text() == text


def test_a_race_on_recorded_spaces_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("vl_convert", reason="the library that draws charts is not installed")
    (tmp_path / "spaces").mkdir()
    write_grid(grid_of(matmul(40, 36, 60), points=60), tmp_path / "spaces" / "small.npz")
    common = [
        "--spaces", str(tmp_path / "spaces"), "--folder", str(tmp_path), "--jobs", "1", "--seeds",
        "2", "--trials", "24",
    ]  # fmt: skip
    docs = tmp_path / "docs"

    def run(*arguments: str) -> str:
        assert main([*common, *arguments], docs) == 0
        said = capsys.readouterr()
        return said.out + said.err

    assert "4 jobs are left" in run("--stage", "spaces", "--only", "random", "--budget", "0.000001")
    said = run("--stage", "spaces", "--only", "random")
    assert "all jobs are done" in said and "trials to 99 %, mean (95 %)" in said
    assert "2 of 4 jobs are done" in run("--stage", "selectors", "--only", "top_k")
    assert "4 of 4 jobs are done" in run("--stage", "selectors", "--only", "top_k")
    assert "done" in run("--stage", "spaces", "--only", "random", "--list")
    assert "wrote" in run("--stage", "report")
    text = (docs / "results" / "race.md").read_text()
    assert "![Selectors](../pictures/race_selectors.svg)" in text
    assert "small" in (docs / "results" / "race_tables.md").read_text()
    assert (docs / "pictures" / "race_selectors.svg").read_text().startswith("<svg")
    assert main([*common, "--stage", "spaces", "--on", "none"], docs) == 2
    assert "no space is called 'none'" in capsys.readouterr().err
