"""C agrees with LLVM on a few families of the operator suite; the command compares all."""

from __future__ import annotations

import pytest

from ansorpy.evaluation.verify import DEFAULT_TOLERANCE
from ansorpy.target import Target
from benchmarks.ops.suite import SMALL
from tests.campaigns.agreement import errors_of, main
from tests.codegen.c.compiled import needs_cc, needs_openmp

pytestmark = needs_cc
FEW = {case.family: case for case in SMALL if case.family in ("C2D", "GMM", "SOFTMAX")}
CORES, SCALAR, VECTOR = "c:cores=2", "c:word=32,l1=8KiB,l2=0", "c:vector=128"


@pytest.mark.parametrize(
    ("name", "family"),
    [
        pytest.param(CORES, "GMM", marks=needs_openmp),
        pytest.param(CORES, "SOFTMAX", marks=needs_openmp),
        (SCALAR, "C2D"), (SCALAR, "SOFTMAX"), (VECTOR, "C2D"), (VECTOR, "GMM"),
    ],
)  # fmt: skip
def test_the_same_schedules_give_the_same_results(name: str, family: str) -> None:
    found = [*errors_of(FEW[family], Target.parse(name), schedules=2, seed=0)]
    assert len(found) > 1 and max(found) <= DEFAULT_TOLERANCE


def test_the_command_says_what_agrees(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["GELU", "--schedules", "1"]) == 0
    said = capsys.readouterr().out.split()
    assert said[:2] == ["GELU", "ok"] and said[-1] == "schedules"


def test_names_of_nothing_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["GELU", "resnet5"])
    assert "nothing is called resnet5" in capsys.readouterr().err
