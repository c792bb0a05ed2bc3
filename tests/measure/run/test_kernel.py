"""Loading, binding and timing in this process, with candidates that are safe to run here."""

from __future__ import annotations

import weakref
from contextlib import closing

import numpy as np
import pytest

from ansorpy.codegen.llvm.objects.build import compile_ir
from ansorpy.codegen.object_code import ObjectCode
from ansorpy.errors import CodegenError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.loops import Role
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.measure.build.built import Built, ParamSpec
from ansorpy.measure.run.buffers import FLOATS, ConstantCopies, TaskArrays
from ansorpy.measure.run.kernel import LoadedKernel
from ansorpy.target import Target
from tests.measure.planted import N, doubling, planted


def loaded(built: Built, task: TaskArrays) -> closing[LoadedKernel]:
    return closing(LoadedKernel(built, task, 1))


def test_a_good_kernel_runs_and_takes_time():
    task = TaskArrays(doubling(), seed=1)
    with loaded(planted("good"), task) as kernel:
        kernel.check()
        assert np.array_equal(task.checked[0].array, task.guarded["A"].array * 2)
        kernel.prepare(0)
        assert 0 < kernel.burst(10) < 1
        assert np.array_equal(task.outputs[0], task.inputs["A"] * 2)


@pytest.mark.parametrize("kind", ["last unwritten", "first unwritten"])
def test_what_was_not_written_is_still_poisoned(kind):
    task = TaskArrays(doubling(), seed=1)
    for before in ("good", kind):
        with loaded(planted(before), task) as kernel:
            kernel.check()
    assert np.isnan(task.checked[0].array).sum() == 1


def test_each_check_sees_what_its_own_run_wrote():
    task = TaskArrays(doubling(), seed=1)
    with loaded(planted("good"), task) as good, loaded(planted("last unwritten"), task) as bad:
        good.check()
        bad.check()
    assert np.isnan(task.checked[0].array).sum() == 1


def test_a_write_before_the_buffer_is_seen():
    task = TaskArrays(doubling(), seed=1)
    with (
        loaded(planted("writes before"), task) as kernel,
        pytest.raises(CodegenError, match="wrote outside its buffers"),
    ):
        kernel.check()


def test_an_error_code_is_an_error():
    task = TaskArrays(doubling(), seed=1)
    with loaded(planted("error code"), task) as kernel:
        with pytest.raises(CodegenError, match="returned the error code 7"):
            kernel.check()
        kernel.prepare(0)
        with pytest.raises(CodegenError, match="returned the error code 7"):
            kernel.burst(3)


def scaled() -> ComputeDAG:
    """C = A * W[0], D = W packed twice as wide at bind time."""
    a, w = placeholder((N,), name="A"), placeholder((5,), name="W", constant=True)
    return ComputeDAG.of([a, w, compute((N,), lambda i: a[i] * w[i % 5], name="C")])


_SUM = """
define i32 @bind(ptr %args, ptr %workspace, i32 %threads) {
  %W = load ptr, ptr %args
  %P.at = getelementptr ptr, ptr %args, i64 1
  %P = load ptr, ptr %P.at
  %w.at = getelementptr float, ptr %W, i64 4
  %w = load float, ptr %w.at
  %p.at = getelementptr float, ptr %P, i64 19
  store float %w, ptr %p.at
  ret i32 0
}
define i32 @run(ptr %args, ptr %workspace, i32 %threads) {
  %P.at = getelementptr ptr, ptr %args, i64 2
  %P = load ptr, ptr %P.at
  %C.at = getelementptr ptr, ptr %args, i64 3
  %C = load ptr, ptr %C.at
  %p.at = getelementptr float, ptr %P, i64 19
  %p = load float, ptr %p.at
  store float %p, ptr %C
  ret i32 0
}
"""


def packed_candidate() -> Built:
    def spec(name: str, extent: int, role: Role) -> ParamSpec:
        return ParamSpec(name=name, shape=(extent,), dtype=DType.FLOAT32, role=role)

    target = Target.host()
    bind, run = (f"define{part}" for part in _SUM.split("define")[1:])
    return Built(
        ObjectCode("run", compile_ir(run, target), 0, 0, 0.0, "run"),
        (
            spec("A", N, Role.INPUT), spec("W", 5, Role.CONSTANT),
            spec("W.packed", 20, Role.CONSTANT), spec("C", N, Role.OUTPUT),
        ),
        ObjectCode("bind", compile_ir(bind, target), 0, 0, 0.0, "bind"),
        (spec("W", 5, Role.INPUT), spec("W.packed", 20, Role.OUTPUT)),
    )  # fmt: skip


def test_bind_makes_the_constants_and_cold_ones_are_copied_in_turn():
    task = TaskArrays(scaled(), seed=2)
    with loaded(packed_candidate(), task) as kernel:
        kernel.check()
        weight = task.guarded["W"].array[4]
        assert task.checked[0].array[0] == weight
        constants = kernel.buffers.constants(kernel.built.run_params)
        assert list(constants) == ["W", "W.packed"]
        copies = ConstantCopies(task, kernel.built.run_params, constants, 1000)
        # 64 + 128 bytes a copy, on cache lines: six others make 1000 bytes.
        assert copies.tables.shape == (7, 4)
        assert (np.diff(copies.tables[:, 1].astype(np.int64)) == 192).all()
        assert (copies.tables[:, 1:3] % 64 == 0).all()
        assert (np.diff(copies.tables[:, [0, 3]].astype(np.int64), axis=0) == 0).all()
        kernel.prepare(1000)
        for _ in range(5):
            kernel.burst(4)
        copies_of_all = FLOATS.filled(192 * 7, []).view(np.float32).reshape(7, -1)
        copies_of_all[...] = np.arange(7)[:, None]
        for number in (20, 21):
            kernel.burst(1)
            assert task.outputs[0][0] == number % 7


def test_candidates_share_the_constants_that_none_can_write():
    task = TaskArrays(scaled(), seed=2)
    with loaded(packed_candidate(), task) as one, loaded(packed_candidate(), task) as other:
        ours, others = (
            [guarded.address for guarded in kernel.buffers.arguments(kernel.built.run_params)]
            for kernel in (one, other)
        )
    assert [a == b for a, b in zip(ours, others, strict=True)] == [True, True, False, True]
    assert ours[1] % 64 == 0 and ours[1] != task.guarded["W"].address


def test_memory_of_constants_lives_as_long_as_who_reads_it():
    """Finalists are timed in turns; one that needs more memory must not take that of others."""
    task = TaskArrays(scaled(), seed=1)
    with loaded(packed_candidate(), task) as kernel:
        kernel.check()
        params = kernel.built.run_params
        constants = kernel.buffers.constants(params)
        first = ConstantCopies(task, params, constants, 0)
        memory = weakref.ref(FLOATS.filled(1, []).base)
        larger = ConstantCopies(task, params, constants, 1 << 22)
        assert memory() is not None
        addresses = [tables.tables[0].tolist() for tables in (first, larger)]
        assert addresses[0] != addresses[1]
        del first
        assert memory() is None


def test_a_kernel_of_another_task_is_refused():
    task = TaskArrays(scaled(), seed=2)
    with loaded(planted("good"), task) as kernel:
        kernel.check()
    other = TaskArrays(ComputeDAG([compute((3,), lambda i: i + 0, name="C")]), seed=0)
    with loaded(planted("good"), other) as kernel, pytest.raises(CodegenError):
        kernel.check()


def test_a_candidate_goes_over_the_wire_unchanged():
    from ansorpy.measure.build.built import built_from_parts

    built = packed_candidate()
    header, blobs = built.parts()
    assert built_from_parts(header, blobs) == built
    assert built_from_parts(header, blobs).digest == built.digest
    assert planted("good").digest != planted("wrong").digest
