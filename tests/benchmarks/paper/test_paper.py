"""The experiments: their variants, their page from made-up outcomes, and what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ansorpy.ir.interpret import run_dag, run_program
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import ANSOR_CPU
from ansorpy.schedule.lowering.program import lower
from benchmarks.ops.suite import matching
from benchmarks.paper.__main__ import main, paper
from benchmarks.paper.ablation import at_trials
from benchmarks.paper.claims import CLAIMS
from benchmarks.paper.variants import LIMITED, OPERATOR, limited, named
from benchmarks.study.outcomes import Conditions, Outcome, Outcomes
from benchmarks.study.study import StudySettings, pages
from tests.benchmarks.networks.results import result as network_result
from tests.benchmarks.ops.results import result
from tests.search.tasks import dense_relu

SETTINGS = StudySettings(threads=2)


@pytest.fixture
def outcomes(tmp_path: Path) -> Outcomes:
    return Outcomes(tmp_path / "outcomes.jsonl", Conditions("1+abc", "this one"))


def value_of(key: str, number: int) -> dict[str, Any]:
    kind, *_, name = key.split("/")
    rng = np.random.default_rng(number)
    if kind == "operator":
        [case] = matching([name])
        return result(case, 2, ansorpy=1.0, torch=float(rng.uniform(1.5, 2.5))).model_dump()
    if kind == "network":
        return network_result(name, ansorpy=1.0, onnxruntime=2.0).model_dump()
    best = float(rng.uniform(1.0, 1.2))
    return {"points": [(1.0, 4, 3.0), (9.0, 300, best)], "trials": 400, "best_ms": best}


def test_every_stage_has_a_claim() -> None:
    assert {stage.name for stage in paper().stages} == set(CLAIMS)
    assert all(claim.text.startswith("The paper, section 7") for claim in CLAIMS.values())


def test_a_page_without_results_says_so(outcomes: Outcomes, tmp_path: Path) -> None:
    study = paper(tmp_path)
    [text] = pages(study, SETTINGS, outcomes).values()
    assert text.count("No results yet: `python -m benchmarks.paper") == len(CLAIMS)


def test_the_page(outcomes: Outcomes, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="the library that draws charts is not installed")
    study = paper(tmp_path)
    jobs = [job for stage in study.stages for job in stage.jobs(SETTINGS)]
    for number, job in enumerate(jobs):
        assert job.alone
        value = None if "beam" in job.key else value_of(job.key, number)
        outcomes.add(
            Outcome.now(
                job.key, outcomes.conditions, value=value, seconds=1.0, others=0.0,
                error="" if value else 'unknown strategy "beam"',
            )
        )  # fmt: skip
    written = {path.name: text for path, text in pages(study, SETTINGS, outcomes).items()}
    text = written.pop("paper.md")
    assert set(written) == {f"paper_{name}.svg" for name in CLAIMS}
    assert all(claim.text in text for claim in CLAIMS.values())
    assert "No results yet" not in text and len(text.splitlines()) <= 200
    assert "| C2D b16 | 4 |" in text and "trials each, fastest in 52 of 52 cases" in text
    assert 'beam search/0, unknown strategy "beam"' in text
    assert "| resnet50 | 1.000 | 2.000 | 2.00 |" in text
    assert "| resnet50 | 2.000 | 300 trials, 9 s |" in text


def test_the_command_lists_its_jobs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ["--list", "--folder", str(tmp_path), "--threads", "2", "--stage"]
    assert main([*arguments, "ablation"], tmp_path) == 0
    found = capsys.readouterr().out.splitlines()
    assert len(found) == 5 * len(OPERATOR)
    assert found[0] == "ablation/1000t/2/C2D.7x7.512-512.k3s1.b16/Ansor/0"
    assert main([*arguments[1:], "operators", "--on", "LN.128x768"], tmp_path) == 2
    assert "these stages have no job on that" in capsys.readouterr().err


def test_best_after_trials() -> None:
    value = {"points": [(1.0, 4, 3.0), (9.0, 300, 1.0)]}
    assert [at_trials(value, n) for n in (3, 4, 299, 300)] == [float("inf"), 3.0, 3.0, 1.0]


def test_the_limited_space_is_smaller_and_computes_the_same(rng: np.random.Generator) -> None:
    task = dense_relu(8, 12, 6)
    values = [rng.standard_normal(op.shape, np.float32) for op in task.dag.args]
    names = [op.name for op in task.dag.args]
    [want] = run_dag(task.dag, dict(zip(names, values, strict=True)))
    sizes = []
    for preset in (ANSOR_CPU, limited(ANSOR_CPU)):
        sampler = SketchSampler(task, preset)
        placed = [sampler.place(pair.sketch, rng) for pair in sampler.pairs]
        sizes.append(max(sketch.space.size for sketch in placed))
        for sketch in placed:
            table = sketch.sample(4, rng)
            state = sketch.resolve(table[sketch.valid(table)][0])
            out = np.full(want.shape, np.nan, np.float32)
            run_program(lower(state).run, [*values, out])
            np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)
    assert sizes[1] < sizes[0]
    assert LIMITED.preset == limited(ANSOR_CPU) and LIMITED.preset.move is None
    assert {named(v.name).name for v in OPERATOR} == {v.name for v in OPERATOR}
