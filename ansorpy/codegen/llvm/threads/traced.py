"""Recording of what each thread does: a team whose pieces leave events, as compiled code.

Kernels that are linked with :class:`Recorder` in place of the team run their parallel loops on it
as before, but each piece, and each loop as a whole, is an event with the thread that ran it.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ansorpy.codegen.llvm.emit.functions import TEAM
from ansorpy.codegen.llvm.objects.build import compile_ir
from ansorpy.codegen.llvm.objects.clock import NOW, NOW_SOURCE, RECORD
from ansorpy.codegen.llvm.objects.jit import load
from ansorpy.target import Target

__all__ = ["EventKind", "Recorder"]

_TRACED = "traced_loop"
_STATE = "record_state"
_WORDS = 5
"""Of an event: kind, number, thread, and start and end in nanoseconds of the monotonic clock."""


class EventKind(IntEnum):
    """What an event is."""

    CALL = 0
    PIECE = 1
    LOOP = 2


_SOURCE = f"""{NOW_SOURCE}
declare i64 @pthread_self()
declare void @{TEAM}(ptr, ptr, i32)

; The buffer, its capacity in events, and the number of events so far.
@{_STATE} = global {{ ptr, i64, i64 }} zeroinitializer, align 64

define void @{RECORD}(i64 %kind, i64 %number, i64 %start, i64 %end) {{
  %buffer = load ptr, ptr @{_STATE}
  %capacity.at = getelementptr i8, ptr @{_STATE}, i64 8
  %capacity = load i64, ptr %capacity.at
  %next = getelementptr i8, ptr @{_STATE}, i64 16
  %at = atomicrmw add ptr %next, i64 1 monotonic
  %fits = icmp ult i64 %at, %capacity
  br i1 %fits, label %write, label %done
write:
  %thread = call i64 @pthread_self()
  %event = getelementptr [{_WORDS} x i64], ptr %buffer, i64 %at
  store i64 %kind, ptr %event
  %second = getelementptr i64, ptr %event, i64 1
  store i64 %number, ptr %second
  %third = getelementptr i64, ptr %event, i64 2
  store i64 %thread, ptr %third
  %fourth = getelementptr i64, ptr %event, i64 3
  store i64 %start, ptr %fourth
  %fifth = getelementptr i64, ptr %event, i64 4
  store i64 %end, ptr %fifth
  br label %done
done:
  ret void
}}

define internal void @piece(ptr %loop, i64 %number, i64 %count) {{
  %f = load ptr, ptr %loop
  %data.at = getelementptr ptr, ptr %loop, i64 1
  %data = load ptr, ptr %data.at
  %start = call i64 @{NOW}()
  call void %f(ptr %data, i64 %number, i64 %count)
  %end = call i64 @{NOW}()
  call void @{RECORD}(i64 {EventKind.PIECE:d}, i64 %number, i64 %start, i64 %end)
  ret void
}}

; All pieces are done when the team returns, so none reads %loop afterwards.
define void @{_TRACED}(ptr %f, ptr %data, i32 %threads) {{
  %loop = alloca [2 x ptr], align 8
  store ptr %f, ptr %loop
  %data.at = getelementptr ptr, ptr %loop, i64 1
  store ptr %data, ptr %data.at
  %start = call i64 @{NOW}()
  call void @{TEAM}(ptr @piece, ptr %loop, i32 %threads)
  %end = call i64 @{NOW}()
  %count = zext i32 %threads to i64
  call void @{RECORD}(i64 {EventKind.LOOP:d}, i64 %count, i64 %start, i64 %end)
  ret void
}}
"""


class Recorder:
    """A buffer of events, and the functions that code is linked with to record them there."""

    def __init__(self, capacity: int) -> None:
        host = Target.host()
        source = f'target triple = "{host.triple}"\n{_SOURCE}'
        self._library = load([compile_ir(source, host)], symbols=[RECORD, _TRACED, _STATE])
        self._buffer = np.zeros((capacity, _WORDS), np.int64)
        state = (ctypes.c_int64 * 3).from_address(self._library.address(_STATE))
        state[0], state[1] = self._buffer.ctypes.data, capacity
        self._state = state

    @property
    def imports(self) -> dict[str, int]:
        """The addresses of the functions, by the names that code calls."""
        return {RECORD: self._library.address(RECORD), TEAM: self._library.address(_TRACED)}

    @property
    def lost(self) -> int:
        """Number of events for which there was no room."""
        return max(0, int(self._state[2]) - len(self._buffer))

    def clear(self) -> None:
        """Forget all events."""
        self._state[2] = 0

    def events(self) -> NDArray[np.int64]:
        """A row for each event: :class:`EventKind`, number, thread, start and end in ns.

        The number is that of a call or piece, or the count of pieces of a loop.
        """
        return self._buffer[: min(int(self._state[2]), len(self._buffer))].copy()
