"""TensorCores: a sketch for products of narrow values, with its tiles and epilogue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.tensor import Tensor
from ansorpy.rules.algorithms.tf32 import Tf32
from ansorpy.rules.sketch.tensor_cores import TensorCores
from ansorpy.schedule.stage import SplitRelation
from ansorpy.schedule.state import State
from ansorpy.target import Target
from tests import workloads
from tests.rules.asking import ALONE, APPLY, CPU, SKIP, ask, derive, shows
from tests.tensor_cores import GPU, WORKLOADS, activated, convolution, matmul

RULE = TensorCores()


def test_products_of_narrow_values_may_use_them() -> None:
    for name in ("even", "prime", "odd_bfloat16", "odd_int8", "mixed", "half_sums", "convolution"):
        assert ask(RULE, WORKLOADS[name], "C", GPU).answer is APPLY, name
    assert ask(RULE, WORKLOADS["prime"], "A", GPU).answer is SKIP
    assert "not a sum of products" in ask(RULE, workloads.softmax(4, 32), "max", GPU).reason


def test_float32_is_rounded_only_where_that_is_allowed() -> None:
    exact = ComputeDAG.of(workloads.matmul(64, 64, 64))
    assert "may not be rounded" in ask(RULE, State.initial(exact), "C", GPU).reason
    (rounded,) = Tf32().rewrite(exact, GPU)
    assert ask(RULE, State.initial(rounded.dag), "C", GPU).answer is ALONE


@pytest.mark.parametrize("target", [CPU, Target.parse("sm_75")])
def test_other_targets_have_none(target: Target) -> None:
    assert "no tensor cores" in ask(RULE, WORKLOADS["even"], "C", target).reason


@pytest.mark.parametrize("part, loads", [(80, 2), (81, 0)])
def test_parts_of_whole_fragments_are_loaded_by_matrices(part: int, loads: int) -> None:
    """Tiles of such parts divide them, so that no fragment contains steps of the next part."""
    state, (outer, _) = State.initial(matmul("float16", 64, 32, 4 * part)).split("C", "k", (part,))
    state, partial = state.rfactor("C", outer, 0)
    ((made, _),) = derive(RULE, state, partial, GPU)
    assert [s.name for s in made.stages if "ldmatrix" in str(s.tensorized)] == (
        ["A.warp", "B.warp"][:loads]
    )
    tails = {r.parent: r.tail for r in made.stage("C.rf.warp").relations
             if isinstance(r, SplitRelation)}  # fmt: skip
    assert tails["k.1"] == ("guard" if loads else "whole")


def test_fragments_must_not_be_all_but_empty() -> None:
    verdict = ask(RULE, matmul("float16", 1, 40, 30), "C", GPU)
    assert verdict.answer is SKIP and "times the work" in verdict.reason
    patient = replace(RULE, most_waste=32.0)
    assert ask(patient, matmul("float16", 1, 40, 30), "C", GPU).answer is APPLY


def test_blocks_warps_and_lanes_are_bound() -> None:
    ((state, following),) = derive(RULE, matmul("float16", 64, 32, 48), "C", GPU)
    assert following == "B"
    shows(
        state,
        """
        for i.0@j.0@ in 0..?  # blockIdx.x
          for i.1@j.1@ in 0..?  # threadIdx.z
            for i.2.2 in 0..8  # threadIdx.y
              for j.2.1 in 0..4  # threadIdx.x
                for i.0 in 0..?
                  for j.0 in 0..?
                    for i.1 in 0..?
                      for j.1 in 0..?
                        for k.0 in 0..?  # reduce
                          for k.1 in 0..?  # unrolled, reduce
                            for i.0 in 0..4  # unrolled
                              for k.0 in 0..3  # unrolled
                                for i.1 in 0..16
                                  for k.1 in 0..16
                                    A.warp[i, k] = ...
                            for k.0 in 0..3  # unrolled
                              for j.0 in 0..4  # unrolled
                                for k.1 in 0..16
                                  for j.1 in 0..8
                                    B.warp[k, j] = ...
                            for i.2 in 0..?
                              for j.2 in 0..?
                                for i.3 in 0..16
                                  for j.3 in 0..8
                                    for k.2 in 0..16  # reduce
                                      C.warp[i, j] += ...
                for i.2.0 in 0..?  # unrolled
                  for i.2.1 in 0..2  # unrolled
                    for j.2.0 in 0..?  # unrolled
                      for j.2.2 in 0..2  # vectorized
                        C[i, j] = ...
        """,
    )


def test_what_follows_is_done_to_the_registers() -> None:
    ((state, _),) = derive(RULE, activated(18, 27, 20), "C", GPU)
    assert state.stage("C").inlined
    total = state.stage("C.warp")
    assert total.attach is not None and total.attach.stage == "D"


@pytest.mark.parametrize("name", ["above", "with_above"])
def test_what_reads_other_elements_follows_in_a_kernel_of_its_own(name: str) -> None:
    """Other lanes hold those elements."""
    ((state, _),) = derive(RULE, WORKLOADS[name], "C", GPU)
    total = state.stage("C.warp")
    assert total.attach is not None and total.attach.stage == "C"
    assert not state.stage("C").inlined


def test_fragments_take_the_axes_they_fill_best() -> None:
    ((state, _),) = derive(RULE, matmul("float16", 40, 48, 64), "C", GPU)
    assert "'j', 'i', 'k'" in str(state.history)  # 48 rows are three fragments, 40 two and a half
    ((state, _),) = derive(RULE, convolution((16, 16), 32, 24, 3, pad=1), "C", GPU)
    assert "'z', 'o', 'rc'" in str(state.history)  # along rows of pixels, not across them


def loads(tensors: Sequence[Tensor]) -> list[str]:
    """The instructions that load whole fragments, for both operands at most."""
    ((state, _),) = derive(RULE, tensors, "C", GPU)
    found = [s.tensorized[1] for s in state.stages if s.tensorized is not None]
    return [by for by in found if by.startswith("ldmatrix")]


def test_matrices_are_loaded_whole_where_rows_allow_it() -> None:
    assert loads(WORKLOADS["even"]) == ["ldmatrix.a.float16", "ldmatrix.b.float16.trans"]
    assert loads(WORKLOADS["turned"]) == ["ldmatrix.a.float16.trans", "ldmatrix.b.float16"]
    assert loads(WORKLOADS["turned_bytes"]) == ["ldmatrix.a.int8", "ldmatrix.b.int8"]
    assert loads(WORKLOADS["odd_uint8"]) == ["ldmatrix.a.uint8"]  # bytes are not turned
    assert loads(WORKLOADS["strided"]) == ["ldmatrix.b.float16.trans"]
    assert loads(WORKLOADS["heads"]) == ["ldmatrix.a.float16", "ldmatrix.b.float16"]
    whole = convolution((16, 16), 32, 24, 3, pad=1)
    assert loads(whole) == ["ldmatrix.a.float16", "ldmatrix.b.float16.trans"]
