"""Candidates written by hand in LLVM IR, right and wrong in every way a kernel can be.

All are kernels of :func:`doubling`: ``C[i] = A[i] * 2``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ansorpy.codegen.llvm.objects.build import compile_ir
from ansorpy.codegen.object_code import ObjectCode
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.loops import Role
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.measure.build.built import Built, ParamSpec
from ansorpy.measure.result import MeasureResult
from ansorpy.schedule.state import State
from ansorpy.target import Target

N = 1237

_LOOP = """
define i32 @planted(ptr %args, ptr %workspace, i32 %threads) {{
entry:
  %A = load ptr, ptr %args
  %C.at = getelementptr ptr, ptr %args, i64 1
  %C = load ptr, ptr %C.at
  br label %loop
loop:
  %i = phi i64 [ {first}, %entry ], [ %next, %stored ]
  %a.at = getelementptr float, ptr %A, i64 %i
  %a = load float, ptr %a.at
  %c = fmul float %a, {factor}
  {extra}
  %c.at = getelementptr float, ptr {target}, i64 %i
  br label %wait
wait:
  %w = phi i64 [ 0, %loop ], [ %w.next, %wait ]
  %w.next = add i64 %w, 1
  store volatile i64 %w.next, ptr %workspace
  %waiting = icmp slt i64 %w.next, {delay}
  br i1 %waiting, label %wait, label %stored
stored:
  store float %c, ptr %c.at
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, {last}
  br i1 %again, label %loop, label %done
done:
  ret i32 {status}
}}
"""

GOOD: dict[str, object] = {
    "first": 0, "last": N, "factor": "2.0", "target": "%C", "extra": "", "delay": 1, "status": 0,
}  # fmt: skip

KINDS: dict[str, dict[str, object]] = {
    "good": {},
    "good too": {"delay": 2},
    "slow": {"delay": 600},
    "wrong": {"factor": "2.25"},
    "barely wrong": {"factor": "0x4000002000000000"},
    "last unwritten": {"last": N - 1},
    "first unwritten": {"first": 1},
    "writes beyond": {"last": N + 1},
    "writes before": {"first": -1},
    "writes its input": {"target": "%A"},
    "null": {"extra": "store volatile float %c, ptr null"},
    "trap": {"extra": "call void @llvm.trap()"},
    "hang": {"delay": 2**62},
    "error code": {"status": 7},
}


@cache
def planted(kind: str) -> Built:
    """The candidate of this kind."""
    text = _LOOP.format(**{**GOOD, **KINDS[kind]}) + "\ndeclare void @llvm.trap()\n"
    return Built(
        ObjectCode("planted", compile_ir(text, Target.host()), 64, 0, 0.01, kind),
        (
            ParamSpec(name="A", shape=(N,), dtype=DType.FLOAT32, role=Role.INPUT),
            ParamSpec(name="C", shape=(N,), dtype=DType.FLOAT32, role=Role.OUTPUT),
        ),
    )


def doubling(source: str = "A", result: str = "C") -> ComputeDAG:
    a = placeholder((N,), name=source)
    return ComputeDAG.of([a, compute((N,), lambda i: a[i] * 2.0, name=result)])


def planted_state(dag: ComputeDAG, kind: str) -> State:
    """A schedule that stands for a kind: its split says which."""
    return State.initial(dag).split("C", "i", (list(KINDS).index(kind) + 2,))[0]


class PlantedBuilder:
    """A build service whose shelf holds the planted candidates; the default schedule is good."""

    def build(self, task: Task, states: Sequence[State]) -> list[Built | MeasureResult]:
        found: list[Built | MeasureResult] = []
        for state in states:
            extents = [it.extent for it in state.stage("C").iters]
            kind = "good" if len(extents) == 1 else list(KINDS)[(extents[1] or 0) - 2]
            found.append(planted(kind))
        return found

    def close(self) -> None:
        """Nothing to give up."""
