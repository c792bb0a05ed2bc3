from __future__ import annotations

from pathlib import Path

import pytest

from ansorpy.errors import ForeignFile, UsageError
from benchmarks.ops.result import Result, Run, merged, read_run
from tests.benchmarks.ops.results import GEMM, NORM, result


def test_ratios_and_shares() -> None:
    r = result(GEMM, 2, ansorpy=0.5, onnxruntime=2.0, torch=1.0)
    assert (r.best_peer, r.best_peer_ms, r.ratio) == ("torch", 1.0, 2.0)
    assert r.share == 0.5 and r.share_after_fork == pytest.approx(0.6)
    alone = result(GEMM, 2, ansorpy=0.5)
    assert (alone.best_peer, alone.ratio, alone.share) == (None, None, 0.5)
    failed = result(GEMM, 2, {"ansorpy": "no program"}, torch=1.0)
    assert (failed.ours_ms, failed.ratio, failed.share) == (None, None, None)


def test_a_file_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "ops.json"
    run = Run(
        machine={"cpu": "some", "cores": 2}, effort="full", seed=0,
        calls=(result(NORM, 1, torch=1.0),),
        results=(result(GEMM, 1, ansorpy=0.5), result(NORM, 1, {"torch": "no"}, ansorpy=1.0)),
    )  # fmt: skip
    path.write_text(run.to_json())
    assert read_run(path) == run
    path.write_text('{"results": [{}]}')
    with pytest.raises(ForeignFile, match="has no results"):
        read_run(path)
    with pytest.raises(ForeignFile, match="has no results"):
        read_run(tmp_path / "absent.json")


def test_later_results_replace_earlier_ones_in_their_place() -> None:
    one, two = result(GEMM, 1, ansorpy=1.0), result(NORM, 1, ansorpy=1.0)
    new, more = result(GEMM, 1, ansorpy=2.0), result(GEMM, 2, ansorpy=2.0)
    assert merged([one, two], [more, new]) == (new, two, more)


def test_a_run_goes_onto_an_earlier_one_of_the_same_conditions() -> None:
    def run(effort: str, *results: Result) -> Run:
        return Run(machine={}, effort=effort, seed=0, calls=results, results=results)

    old, new, other = (result(c, 1, ansorpy=t) for c, t in ((GEMM, 1.0), (GEMM, 2.0), (NORM, 3.0)))
    whole = run("full", new).onto(run("full", old, other))
    assert whole.results == whole.calls == (new, other)
    with pytest.raises(UsageError, match="has results of effort full, these are of none"):
        run("none", new).onto(run("full", old))
    for changed in ({"seed": 1}, {"machine": {"cpu": "other"}}):
        with pytest.raises(UsageError, match=f"has results of {next(iter(changed))} "):
            run("full", new).model_copy(update=changed).onto(run("full", old))
