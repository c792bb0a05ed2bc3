"""Builds go on around candidates that break the compiler."""

from __future__ import annotations

from ansorpy.measure.builder import Builder, task_symbol
from ansorpy.measure.built import Built
from ansorpy.measure.result import MeasureResult, TrialKind
from tests.measure import build_payload
from tests.measure.definitions import matmul, task_of, tiled


def test_each_candidate_is_built_or_says_why_not():
    dag = matmul()
    task = task_of(dag)
    factors = [
        1, build_payload.HANG, 2, build_payload.DIE, build_payload.JUNK, 3, build_payload.LIE, 4
    ]  # fmt: skip
    states = [tiled(dag, factor) for factor in factors]
    open_state = tiled(dag).split("C", "j", (None,))[0]
    builder = Builder(2, timeout_s=2.0, module="tests.measure.build_payload")
    try:
        found = builder.build(task, [*states, open_state])
        again = builder.build(task, states[:1])
    finally:
        builder.close()
    kinds = [result.kind if isinstance(result, MeasureResult) else Built for result in found]
    assert kinds == [
        Built, TrialKind.BUILD_TIMEOUT, Built, TrialKind.CRASH, TrialKind.CRASH, Built,
        TrialKind.BUILD_ERROR, Built, TrialKind.LOWER_ERROR,
    ]  # fmt: skip
    reasons = [result.reason for result in found if isinstance(result, MeasureResult)]
    assert "no answer within 2 s" in reasons[0]
    assert "killed by SIGSEGV" in reasons[1]
    assert "junk instead of an answer" in reasons[2]
    assert "not a built kernel" in reasons[3]
    first, repeated = found[0], again[0]
    assert isinstance(first, Built) and isinstance(repeated, Built)
    assert first.run.symbol == task_symbol(task)
    assert first.run.code == repeated.run.code and first.digest == repeated.digest
    assert [p.name for p in first.run_params] == ["A", "B", "C"]
