"""LLVM IR that reads the monotonic clock."""

from __future__ import annotations

__all__ = ["NOW", "NOW_SOURCE", "RECORD", "SPENT", "START", "stamp_source"]

_CLOCK_MONOTONIC = 1

NOW = "now"
"""``i64 now()``: ``CLOCK_MONOTONIC`` in nanoseconds."""

NOW_SOURCE = f"""
declare i32 @clock_gettime(i32, ptr)

define internal i64 @{NOW}() {{
  %time = alloca [16 x i8], align 8
  %status = call i32 @clock_gettime(i32 {_CLOCK_MONOTONIC}, ptr %time)
  %seconds = load i64, ptr %time
  %rest.at = getelementptr i8, ptr %time, i64 8
  %rest = load i64, ptr %rest.at
  %whole = mul i64 %seconds, 1000000000
  %total = add i64 %whole, %rest
  ret i64 %total
}}
"""

START = "start"
"""``void start(ptr slots, i64 count)``: sets slots 1 to *count* to 0, and slot 0 to the time."""

SPENT = "spent"
"""``void spent(ptr slots, i64 number)``: adds the time since slot 0 to slot *number*.

Slot 0 becomes the current time.
"""

RECORD = "record_event"
"""``void record_event(i64 kind, i64 number, i64 start, i64 end)``: keeps an event
(:mod:`ansorpy.codegen.llvm.threads.traced`)."""


def stamp_source(*, records: bool) -> str:
    """The functions :data:`START` and :data:`SPENT`; with *records*, ``spent`` keeps an event too.

    Its kind is 0, and its number is one less than that of the slot.
    """
    declaration = f"declare void @{RECORD}(i64, i64, i64, i64)" if records else ""
    record = f"call void @{RECORD}(i64 0, i64 %event, i64 %before, i64 %time)" if records else ""
    return f"""{NOW_SOURCE}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
{declaration}

define internal void @{START}(ptr %slots, i64 %count) {{
  %first = getelementptr i8, ptr %slots, i64 8
  %bytes = mul i64 %count, 8
  call void @llvm.memset.p0.i64(ptr %first, i8 0, i64 %bytes, i1 false)
  %time = call i64 @{NOW}()
  store i64 %time, ptr %slots, align 8
  ret void
}}

define internal void @{SPENT}(ptr %slots, i64 %number) {{
  %time = call i64 @{NOW}()
  %before = load i64, ptr %slots, align 8
  %spent = sub i64 %time, %before
  %slot = getelementptr i64, ptr %slots, i64 %number
  %known = load i64, ptr %slot, align 8
  %total = add i64 %known, %spent
  store i64 %total, ptr %slot, align 8
  %event = sub i64 %number, 1
  {record}
  store i64 %time, ptr %slots, align 8
  ret void
}}
"""
