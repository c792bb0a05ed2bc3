"""Shared state of the thread team, as compiled code; child processes do not inherit it.

A child process has only the thread that forked, whatever the others were doing.  So it must see a
new, idle team without threads.  The state lies on separate pages, which the system clears in child
processes.  (A fork handler would have to be removed before its library is unloaded, and reading the
process id in each region would take longer than the rest of its start.)

Why this is correct: callers of regions check that ``@owner`` is set before they write any state,
and it is set only after the system was told to clear the pages in child processes.  In a child it
is 0 again.  The other data of a thread is written before the thread starts; a child inherits such
data only for threads that it does not count among its ``@members``.  ``@quit`` is inherited:
children of a process that is ending run their regions alone.

If the system cannot clear the pages (Linux before 4.14), a child inherits the state.  It sees from
``@owner`` that the threads are not its own, starts none, and runs its regions alone.
"""

from __future__ import annotations

from ansorpy.codegen.llvm.threads.team_cores import MOST

__all__ = ["STATE"]

_PAGE = 65536
"""The largest page size of any supported machine.  The state has this many unused bytes on either
side, so it shares no page with anything else."""

_WIPE_ON_FORK = 18
"""``MADV_WIPEONFORK``."""

STATE = f"""
declare i32 @getpid()
declare i32 @madvise(ptr, i64, i32)

; The region: its number (from 1), the function, its argument, the number of pieces, the number of
; unfinished pieces; then one entry per piece: in region n, 2 n while it is free and 2 n + 1 once it
; is taken, so a late thread with another n takes nothing.  For two or three threads, all of this
; fits in one cache line.
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

; Tell the system to clear the pages of the state in child processes.  Threads that run this at the
; same time all do the same.
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
"""``@team`` and names for its parts; ``own()`` is called by any caller that finds no ``@owner``."""
