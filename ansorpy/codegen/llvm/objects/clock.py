"""LLVM IR that reads the monotonic clock."""

from __future__ import annotations

__all__ = ["NOW", "NOW_SOURCE", "STAMP", "STAMP_SOURCE"]

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

STAMP = "stamp"
"""``void stamp(ptr slot)``: stores the current time in *slot*."""

STAMP_SOURCE = f"""{NOW_SOURCE}
define internal void @{STAMP}(ptr %slot) {{
  %time = call i64 @{NOW}()
  store i64 %time, ptr %slot, align 8
  ret void
}}
"""
