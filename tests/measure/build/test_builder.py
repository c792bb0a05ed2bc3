"""Builds go on around candidates that break the compiler."""

from __future__ import annotations

import time

from ansorpy.codegen.llvm.objects.build import compile_ir
from ansorpy.deadline import until
from ansorpy.measure.build.builder import Builder, build_requests, task_symbol
from ansorpy.measure.build.built import Built
from ansorpy.measure.build.handlers import build
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.workers.protocol import Message
from tests.measure import build_payload
from tests.measure.definitions import matmul, task_of, tiled


def test_each_candidate_is_built_or_says_why_not():
    dag = matmul()
    task = task_of(dag)
    factors = [
        1, build_payload.HANG, 2, build_payload.DIE, build_payload.JUNK, 3, build_payload.LIE, 4,
        build_payload.BOAST,
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
        TrialKind.BUILD_ERROR, Built, TrialKind.BUILD_ERROR, TrialKind.LOWER_ERROR,
    ]  # fmt: skip
    reasons = [result.reason for result in found if isinstance(result, MeasureResult)]
    assert "no answer within 2 s" in reasons[0]
    assert "killed by SIGSEGV" in reasons[1]
    assert "junk instead of an answer" in reasons[2]
    assert "not a built kernel" in reasons[3]
    assert "ok is not a build failure" in reasons[4]
    first, repeated = found[0], again[0]
    assert isinstance(first, Built) and isinstance(repeated, Built)
    assert first.run.symbol == task_symbol(task)
    assert first.run.code == repeated.run.code and first.digest == repeated.digest
    assert [p.name for p in first.run_params] == ["A", "B", "C"]


def test_a_deadline_cuts_the_build_under_way_and_those_that_wait():
    dag = matmul()
    states = [tiled(dag, factor) for factor in (1, build_payload.HANG, 2)]
    builder = Builder(1, timeout_s=300.0, module="tests.measure.build_payload")
    try:
        [first] = builder.build(task_of(dag), states[:1])
        with until(time.monotonic() + 0.5):
            kept, *cut = builder.build(task_of(dag), states)
        [after] = builder.build(task_of(dag), states[2:])
    finally:
        builder.close()
    assert isinstance(first, Built) and kept is first and isinstance(after, Built)
    kinds = [result.kind for result in cut if isinstance(result, MeasureResult)]
    assert kinds == [TrialKind.CUT] * 2


def test_a_build_that_wants_too_much_memory_has_failed():
    dag = matmul()
    states = [tiled(dag, factor) for factor in (build_payload.EAT, 2)]
    builder = Builder(1, module="tests.measure.build_payload", memory_bytes=1 << 30)
    try:
        hungry, modest = builder.build(task_of(dag), states)
    finally:
        builder.close()
    assert isinstance(hungry, MeasureResult) and isinstance(modest, Built)
    assert hungry.kind is TrialKind.LOWER_ERROR
    assert hungry.reason == "out of memory: a build worker may take 1024 MiB"


def test_what_was_built_is_not_built_again():
    dag = matmul()
    states = [tiled(dag, factor) for factor in (1, 2, 1, 3)]
    builder = Builder(1, kept=2)
    try:
        first = builder.build(task_of(dag), states)
        builder.close()
        kept = builder.build(task_of(dag), states[2:])
        alive = any(worker.is_alive for worker in builder.workers)
        other = builder.build(task_of(dag), states[1:2])
    finally:
        builder.close()
    assert first[0] is first[2]
    assert kept == first[2:] and all(isinstance(built, Built) for built in kept)
    assert not alive, "nothing was left to ask a worker for"
    assert isinstance(other[0], Built) and isinstance(first[1], Built)
    assert other[0].digest == first[1].digest


def test_equal_code_is_compiled_once_in_a_worker():
    dag = matmul(constant=True)
    states = [tiled(dag, factor).pack("C", "B") for factor in (2, 4)]
    messages = build_requests(task_of(dag), states)
    compile_ir.cache_clear()
    answers = [build(message) for message in messages]
    assert [answer.kind for answer in answers] == ["built", "built"]
    made = compile_ir.cache_info().misses
    assert [build(message).blobs for message in messages] == [a.blobs for a in answers]
    assert compile_ir.cache_info().misses == made


def test_constants_that_are_not_in_the_caches_are_asked_for_ahead():
    dag = matmul(56, 64, 64, constant=True)
    state, (j0, j1) = tiled(dag).split("C", "j", (16,))
    i, _, _, k = state.stage("C").iters
    state = state.reorder("C", [j0, i, k, j1]).vectorize("C", [j1]).pack("C", "B")
    blobs = {}
    for between in (0, 1 << 22, 1 << 27):
        [message] = build_requests(task_of(dag, reuse_distance_bytes=between), [state])
        same_name = Message(message.kind, {**message.fields, "symbol": "k"}, message.blobs)
        blobs[between] = build(same_name).blobs
    assert blobs[0] != blobs[1 << 22] == blobs[1 << 27]
