"""The text of small kernels, as people read it."""

from __future__ import annotations

from textwrap import dedent

from ansorpy.codegen.cuda.emit.program import emit_cuda
from ansorpy.ir.builders import maximum, select
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import ReduceKind, Var
from ansorpy.ir.loops import (
    Alloc,
    Barrier,
    Buffer,
    For,
    ForKind,
    If,
    Let,
    Program,
    Scope,
    Seq,
)
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests import workloads
from tests.codegen.cuda.emulator import TARGET
from tests.codegen.programs import at, buffer, program, put

bx, tx, k, i, j, row = (Var(name) for name in ("i.0@j.0@", "tx", "k", "i", "j", "row"))


def shows(source: Program, text: str) -> None:
    assert emit_cuda(source, TARGET, "k").kernels == dedent(text)


def test_a_guarded_elementwise_kernel() -> None:
    x, out = buffer("x", 70), buffer("out", 70)
    body = If(bx * 32 + tx < 70, put(out, (bx * 32 + tx,), maximum(at(x, bx * 32 + tx), 0.0)), None)
    grid = For(bx, 3, ForKind.BLOCK_X, For(tx, 32, ForKind.THREAD_X, body))
    shows(program(grid, [x], [out]), """\
        // 3 blocks of 32 threads
        extern "C" __global__ void __launch_bounds__(32) k(
            const float* __restrict__ x /* [70] */,
            float* __restrict__ out /* [70] */) {
          const int i_0_j_0 = blockIdx.x;  // i.0@j.0@: 0..3
          const int tx = threadIdx.x;  // tx: 0..32
          if (i_0_j_0 * 32 + tx < 70) {
            out[i_0_j_0 * 32 + tx] = maximum<float>(x[i_0_j_0 * 32 + tx], 0.0f);
          }
        }
        """)  # fmt: skip


def test_a_tile_in_shared_memory_and_sums_in_registers() -> None:
    a, out = buffer("a", 64, 32), buffer("out", 32)
    tile = buffer("a.shared", 8, 32, scope=Scope.SHARED)
    own = buffer("acc", 2, scope=Scope.LOCAL)
    fill = For(i, 8, ForKind.SERIAL, put(tile, (i, tx), at(a, k * 8 + i, tx)))
    add = For(i, 8, ForKind.SERIAL, For(j, 2, ForKind.UNROLLED, put(
        own, (j,), at(tile, i, tx // 2 * 2 + j), ReduceKind.SUM)))  # fmt: skip
    step = For(k, 8, ForKind.SERIAL, Seq((
        Barrier(Scope.SHARED), fill, Barrier(Scope.SHARED), add)))  # fmt: skip
    body = Alloc(tile, Alloc(own, Seq((
        For(j, 2, ForKind.SERIAL, put(own, (j,), at(a, 0, 0) * 0.0)), step,
        put(out, (tx,), at(own, 0) + at(own, 1)),
    ))))  # fmt: skip
    shows(program(For(tx, 32, ForKind.THREAD_X, body), [a], [out]), """\
        // 1 block of 32 threads
        extern "C" __global__ void __launch_bounds__(32) k(
            const float* __restrict__ a /* [64, 32] */,
            float* __restrict__ out /* [32] */) {
          __shared__ __align__(16) float a_shared[256];  // [8, 32]
          const int tx = threadIdx.x;  // tx: 0..32
          float acc[2];
          #pragma unroll
          for (int j = 0; j < 2; ++j) {
            acc[j] = a[0] * 0.0f;
          }
          for (int k = 0; k < 8; ++k) {
            __syncthreads();
            for (int i = 0; i < 8; ++i) {
              a_shared[i * 32 + tx] = a[k * 256 + i * 32 + tx];
            }
            __syncthreads();
            #pragma unroll
            for (int i = 0; i < 8; ++i) {
              #pragma unroll
              for (int j = 0; j < 2; ++j) {
                acc[j] += a_shared[i * 32 + tx / 2 * 2 + j];
              }
            }
          }
          out[tx] = acc[0] + acc[1];
        }
        """)  # fmt: skip


def test_long_statements_continue_on_a_line_of_their_own() -> None:
    names = [buffer(f"a_tensor_with_a_name_of_some_length_{n}", 4096) for n in range(3)]
    out = buffer("out", 4096)
    value = at(names[0], bx) * at(names[1], bx) + at(names[2], bx)
    text = emit_cuda(
        program(For(bx, 4096, ForKind.BLOCK_X, put(out, (bx,), value)), names, [out]), TARGET, "k"
    ).kernels
    assert all(len(line) <= 100 for line in text.splitlines())
    assert "out[i_0_j_0] =\n      a_tensor" in text


def test_conditions_choices_and_starts() -> None:
    x, out = buffer("x", 16), buffer("out", 16)
    one = put(out, (row + i,), select(row + i >= 3, at(x, row + i - 3), 0.5))
    body = Let(row, bx * 4 + 2, For(i, 2, ForKind.SERIAL, one))
    other = put(out, (bx,), at(x, bx))
    grid = For(bx, 3, ForKind.BLOCK_X, If(bx < 2, body, other))
    shows(program(grid, [x], [out]), """\
        // 3 blocks of 1 thread
        extern "C" __global__ void __launch_bounds__(1) k(
            const float* __restrict__ x /* [16] */,
            float* __restrict__ out /* [16] */) {
          const int i_0_j_0 = blockIdx.x;  // i.0@j.0@: 0..3
          if (i_0_j_0 < 2) {
            const int row = i_0_j_0 * 4 + 2;
            for (int i = 0; i < 2; ++i) {
              out[row + i] = row + i >= 3 ? x[row + i - 3] : 0.5f;
            }
          } else {
            out[i_0_j_0] = x[i_0_j_0];
          }
        }
        """)  # fmt: skip


def test_other_types_and_tensors_that_are_parts_of_others() -> None:
    x = Buffer("x", (4, 8), DType.BFLOAT16, Scope.GLOBAL, (20, 1))
    out = buffer("out", 4, dtype=DType.INT8)
    body = For(bx, 4, ForKind.BLOCK_X, put(out, (bx,), at(x, bx, 7).astype("int8")))
    source = emit_cuda(program(body, [x], [out]), TARGET, "k")
    assert "const bfloat16* __restrict__ x /* [4, 8] strides [20, 1] */" in source.kernels
    assert "out[i_0_j_0] = (signed char)to_int(to_float(x[i_0_j_0 * 20 + 7]));" in source.kernels
    assert source.helpers == ("integers", "bfloat16") and "struct bfloat16" in source.text


def test_a_scheduled_matmul() -> None:
    """By hand: a block of 8 by 8, a row of two elements a thread."""
    state = State.initial(ComputeDAG.of(workloads.matmul(16, 16, 4)))
    state, (row, inner_row) = state.split("C", "i", (8,))
    state, (column, inner, own) = state.split("C", "j", (4, 2))
    state = state.reorder("C", [row, column, inner_row, inner, "k", own])
    state = state.bind("C", row, "blockIdx.y").bind("C", column, "blockIdx.x")
    state = state.bind("C", inner_row, "threadIdx.y").bind("C", inner, "threadIdx.x")
    state = state.unroll("C", own)
    shows(lower(state).run, """\
        // 2 x 2 x 1 blocks of 4 x 8 x 1 threads
        extern "C" __global__ void __launch_bounds__(32) k(
            const float* __restrict__ A /* [16, 4] */,
            const float* __restrict__ B /* [4, 16] */,
            float* __restrict__ C /* [16, 16] */) {
          const int i_0 = blockIdx.y;  // i.0: 0..2
          const int j_0 = blockIdx.x;  // j.0: 0..2
          const int i_1 = threadIdx.y;  // i.1: 0..8
          const int j_1 = threadIdx.x;  // j.1: 0..4
          float C_acc[2];
          #pragma unroll
          for (int j_2_1 = 0; j_2_1 < 2; ++j_2_1) {
            C_acc[j_2_1] = 0.0f;
          }
          #pragma unroll
          for (int k = 0; k < 4; ++k) {
            #pragma unroll
            for (int j_2_1 = 0; j_2_1 < 2; ++j_2_1) {
              C_acc[j_2_1] += A[i_0 * 32 + i_1 * 4 + k] * B[k * 16 + j_0 * 8 + j_1 * 2 + j_2_1];
            }
          }
          #pragma unroll
          for (int j_2_1 = 0; j_2_1 < 2; ++j_2_1) {
            C[i_0 * 128 + i_1 * 16 + j_0 * 8 + j_1 * 2 + j_2_1] = C_acc[j_2_1];
          }
        }
        """)  # fmt: skip
