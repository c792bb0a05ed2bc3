"""What the threads of parallel loops share, as compiled code: it is not inherited by children.

A child process has no threads but the one that forked, whatever the others were doing.  So it must
see a new team, without threads and idle.  The state lies on pages of its own, which the system
clears in children.  (A handler of forks would have to be gone before its library is unloaded, and
asking for the process in each region would take longer than the rest of its start.)

Why this is correct: callers of regions see that ``@owner`` is set before they write any state, and
it is set once children are cleared.  In a child it is 0 again.  What else belongs to a thread is
written before the thread starts; what the child inherits of it is of threads it does not count
among its ``@members``.  ``@quit`` is inherited: children of a process that ends run alone.

Where the system refuses (Linux before 4.14), a child inherits the state.  It sees from ``@owner``
that the threads are not its own, starts none, and runs its regions alone.
"""

from __future__ import annotations

from ansorpy.codegen.llvm.threads.team_cores import MOST

__all__ = ["STATE"]

_PAGE = 65536
"""The largest page size of any supported machine.  With as many unused bytes on either side, the
state shares no page with anything else."""

_WIPE_ON_FORK = 18
"""``MADV_WIPEONFORK``."""

STATE = f"""
declare i32 @getpid()
declare i32 @madvise(ptr, i64, i32)

; The region: its number (from 1), what to call, with what, how many pieces, how many undone; then
; the pieces: in region n 2 n while it is free and 2 n + 1 once it is taken, so that who comes late
; with another n takes nothing.  For two or three threads all of it is one cache line.
%region = type {{ i64, ptr, ptr, i64, i64, [{MOST} x i64] }}
; @busy; @members and @owner, on a cache line that seldom changes; the region.
%team = type {{ [{_PAGE} x i8], [16 x i32], {{ i64, i32, [13 x i32] }}, %region, [{_PAGE} x i8] }}
@team = internal global %team zeroinitializer, align 64
@busy = internal alias i32, getelementptr (%team, ptr @team, i32 0, i32 1)
@members = internal alias i64, getelementptr (%team, ptr @team, i32 0, i32 2)
@owner = internal alias i32, getelementptr (%team, ptr @team, i32 0, i32 2, i32 1)
@region = internal alias %region, getelementptr (%team, ptr @team, i32 0, i32 3)
@function = internal alias ptr, getelementptr (%team, ptr @team, i32 0, i32 3, i32 1)
@data = internal alias ptr, getelementptr (%team, ptr @team, i32 0, i32 3, i32 2)
@count = internal alias i64, getelementptr (%team, ptr @team, i32 0, i32 3, i32 3)
@undone = internal alias i64, getelementptr (%team, ptr @team, i32 0, i32 3, i32 4)
@pieces = internal alias [{MOST} x i64], getelementptr (%team, ptr @team, i32 0, i32 3, i32 5)

; Have the pages that hold only the state cleared in children.  Threads that come here together all
; do the same.
define internal void @own() {{
  %start = ptrtoint ptr @team to i64
  %in.first = add i64 %start, {_PAGE - 1}
  %first = and i64 %in.first, -{_PAGE}
  %after = getelementptr %team, ptr @team, i64 1
  %end = ptrtoint ptr %after to i64
  %last = and i64 %end, -{_PAGE}
  %size = sub i64 %last, %first
  %place = inttoptr i64 %first to ptr
  %refused = call i32 @madvise(ptr %place, i64 %size, i32 {_WIPE_ON_FORK})
  %pid = call i32 @getpid()
  store atomic i32 %pid, ptr @owner release, align 4
  ret void
}}
"""
"""``@team`` and names for its parts; ``own()``, called by whoever finds no ``@owner``."""
