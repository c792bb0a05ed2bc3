"""AddCacheRead: copies in shared memory of the inputs of a tiled reduction."""

from __future__ import annotations

import pytest

from ansorpy.ir import builders as ap
from ansorpy.ir.loops import Scope
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.rules.sketch.add_cache_read import AddCacheRead
from ansorpy.rules.sketch.always_inline import AlwaysInline
from ansorpy.rules.sketch.cross_thread_reduction import CrossThreadReduction
from ansorpy.rules.sketch.multi_level_tiling import MultiLevelTiling
from tests import workloads
from tests.rules.asking import ALONE, CUDA, SKIP, ask, derive
from tests.rules.gpu_workloads import scaled_matmul

RULE = AddCacheRead()


def test_the_copy_is_made_once_an_outermost_reduce_tile() -> None:
    conv = workloads.conv2d_bn_relu(1, 6, 6, 4, 4)
    [(tiled, _)] = derive(MultiLevelTiling("SSSRRSRS"), conv, "conv", CUDA)
    [(state, following)] = derive(RULE, tiled, "weight", CUDA)
    copy = state.stage("weight.shared")
    assert following == "weight"
    assert copy.scope is Scope.SHARED
    assert copy.attach is not None
    assert (copy.attach.stage, copy.attach.iter) == ("conv", "rx.0")
    assert ask(RULE, state, "weight", CUDA).answer is SKIP, "the copy itself is not tiled"


def test_every_reader_gets_its_own_copy() -> None:
    a, b, c = workloads.matmul(8, 8, 8)
    w, k = placeholder((8, 8), name="W"), reduce_axis(8, name="r")
    d = compute((8, 8), lambda i, j: ap.sum(a[i, k] * w[k, j], axis=k), name="D")
    rule = MultiLevelTiling("SSSRRSRS")
    [(first, _)] = derive(rule, [a, b, w, c, d], "C", CUDA)
    [(tiled, _)] = derive(rule, first, "D", CUDA)
    assert ask(RULE, tiled, "A", CUDA).answer is ALONE
    [(state, _)] = derive(RULE, tiled, "A", CUDA)
    copies = [s.attach and s.attach.stage for s in state.stages if s.scope is Scope.SHARED]
    assert sorted(str(name) for name in copies) == ["C", "D"]


def test_reads_along_different_axes_have_tiles_of_their_own() -> None:
    [(tiled, _)] = derive(MultiLevelTiling("SSSRRSRS"), workloads.gram(8, 16), "C", CUDA)
    [(state, following)] = derive(RULE, tiled, "A", CUDA)
    assert following == "A"
    read = {
        op.name: len(found) for op, found in state.current_dag.reads(state.stage("C").op).items()
    }
    assert read == {"A.shared": 1, "A.shared.1": 1}


def test_reads_along_the_same_axes_share_a_tile() -> None:
    a, w = placeholder((9, 8), name="A"), placeholder((8, 8), name="W")
    k = reduce_axis(8, name="k")
    c = compute((8, 8), lambda i, j: ap.sum((a[i, k] + a[i + 1, k]) * w[k, j], axis=k), name="C")
    [(tiled, _)] = derive(MultiLevelTiling("SSSRRSRS"), [a, w, c], "C", CUDA)
    [(state, _)] = derive(RULE, tiled, "A", CUDA)
    read = {
        op.name: len(found) for op, found in state.current_dag.reads(state.stage("C").op).items()
    }
    assert read == {"A.shared": 2, "W": 1}


def test_not_without_a_tiled_reader() -> None:
    assert ask(RULE, workloads.matmul(), "C", CUDA).reason == "nothing reads it"
    verdict = ask(RULE, workloads.min_reduce(), "A", CUDA)
    assert (verdict.answer, verdict.reason) == (
        SKIP, 'its consumer "B" is not a tiled reduction',
    )  # fmt: skip


def test_not_when_the_reader_reduces_across_threads() -> None:
    small = workloads.matmul(4, 4, 256)
    [(state, _)] = derive(CrossThreadReduction(), small, "C", CUDA)
    assert ask(RULE, state, "A", CUDA).reason == '"C" reduces across threads'


def test_not_through_an_inlined_stage() -> None:
    rule = AlwaysInline(strict=False)
    [(state, _)] = derive(rule, workloads.conv2d_bn_relu(1, 6, 6, 4, 4), "pad", CUDA)
    assert ask(RULE, state, "data", CUDA).reason == (
        "an inlined stage stands between it and its consumer"
    )


def test_rows_of_a_copy_are_those_of_its_source() -> None:
    """A transposed view is copied in the order of the tensor in memory."""
    a, b = placeholder((16, 24), name="A"), placeholder((32, 24), name="B")
    view = compute((24, 32), lambda i, j: b[j, i], name="view")
    k = reduce_axis(24, name="k")
    c = compute((16, 32), lambda i, j: ap.sum(a[i, k] * view[k, j], axis=k), name="C")
    [(tiled, _)] = derive(MultiLevelTiling("SSSRRS"), [a, b, view, c], "C", CUDA)
    shapes = {}
    for rule in (RULE, AddCacheRead(by_source=True)):
        [(state, _)] = derive(rule, tiled, "view", CUDA)
        [(state, _)] = derive(rule, state, "A", CUDA)
        shapes[rule.by_source] = [state.stage(f"{n}.shared").op.shape for n in ("view", "A")]
    assert shapes == {False: [(24, 32), (16, 24)], True: [(32, 24), (16, 24)]}


@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_single_element_is_not_copied(shape: tuple[int, ...]) -> None:
    [(tiled, _)] = derive(MultiLevelTiling("SSSRRSRS"), scaled_matmul(8, shape), "C", CUDA)
    assert ask(RULE, tiled, "s", CUDA).reason == "a single element: a register holds it"
    assert ask(RULE, tiled, "A", CUDA).answer is ALONE
