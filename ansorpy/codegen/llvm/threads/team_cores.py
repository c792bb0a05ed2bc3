"""Keep the threads of parallel loops off the caller's core, as compiled code.

Systems place a woken thread on its waker's core, even if the next core is idle, and move it only
after several milliseconds; in this time the caller would run all pieces of the region itself.  So
the caller of a region bars a thread from its own core if that thread last ran there, or is asleep.
Once the thread runs, it may use any core again.
"""

from __future__ import annotations

__all__ = ["CORES", "MOST"]

MOST = 1024
"""Maximum number of threads of a team; a region that requests more has this many pieces."""

_CORES_BYTES = 128
"""Bytes of a CPU set with one bit per core: 1024 cores.  On larger machines, threads stay put."""

CORES = f"""
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sched_setaffinity(i32, i64, ptr)
declare i32 @pthread_setaffinity_np(i64, i64, ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; For each thread: the core it last ran on, whether it was sent off a core, and if so, the cores it
; may use again later.
@places = internal global [{MOST} x i32] [{", ".join(["i32 -1"] * MOST)}], align 64
@sent = internal global [{MOST} x i32] zeroinitializer, align 64
@homes = internal global [{MOST} x [{_CORES_BYTES} x i8]] zeroinitializer, align 64

; Write the cores of the calling thread to %all, and all of them but %cpu to %others; 0 on success.
define internal i32 @list_cores(i32 %cpu, ptr %all, ptr %others) {{
  %known = icmp ult i32 %cpu, {8 * _CORES_BYTES}
  br i1 %known, label %ask, label %none
ask:
  %got = call i32 @sched_getaffinity(i32 0, i64 {_CORES_BYTES}, ptr %all)
  %failed = icmp slt i32 %got, 0
  br i1 %failed, label %none, label %clear
clear:
  call void @llvm.memcpy.p0.p0.i64(ptr %others, ptr %all, i64 {_CORES_BYTES}, i1 false)
  %byte = lshr i32 %cpu, 3
  %place = getelementptr i8, ptr %others, i32 %byte
  %bit.number = and i32 %cpu, 7
  %bit.wide = shl i32 1, %bit.number
  %bit = trunc i32 %bit.wide to i8
  %rest = xor i8 %bit, -1
  %old = load i8, ptr %place
  %new = and i8 %old, %rest
  store i8 %new, ptr %place
  ret i32 0
none:
  ret i32 -1
}}

; Move a thread to any core but this one.  (The system rejects an empty set.)  Threads that are
; ending are skipped, and so are those of a parent process: glibc takes their identifiers for the
; caller's own.
define internal void @send_off(i64 %rank, i32 %cpu) {{
entry:
  %others = alloca [{_CORES_BYTES} x i8], align 8
  %pid = call i32 @getpid()
  %owner = load i32, ptr @owner, align 4
  %is.child = icmp ne i32 %pid, %owner
  br i1 %is.child, label %done, label %list
list:
  %home = getelementptr [{MOST} x [{_CORES_BYTES} x i8]], ptr @homes, i64 0, i64 %rank
  %status = call i32 @list_cores(i32 %cpu, ptr %home, ptr %others)
  %can = icmp eq i32 %status, 0
  br i1 %can, label %look, label %done
look:
  %members = load atomic i64, ptr @members seq_cst, align 8
  %ends = icmp ugt i64 %rank, %members
  br i1 %ends, label %done, label %send
send:
  %of = getelementptr [{MOST} x i64], ptr @threads, i64 0, i64 %rank
  %thread = load i64, ptr %of, align 8
  %set = call i32 @pthread_setaffinity_np(i64 %thread, i64 {_CORES_BYTES}, ptr %others)
  %is.set = icmp eq i32 %set, 0
  br i1 %is.set, label %note, label %done
note:
  %sent = getelementptr [{MOST} x i32], ptr @sent, i64 0, i64 %rank
  store atomic i32 1, ptr %sent release, align 4
  br label %done
done:
  ret void
}}

; Reset the state of this rank for a new thread.
define internal void @forget(i64 %rank) {{
  %place = getelementptr [{MOST} x i32], ptr @places, i64 0, i64 %rank
  store atomic i32 -1, ptr %place monotonic, align 4
  %sent = getelementptr [{MOST} x i32], ptr @sent, i64 0, i64 %rank
  store atomic i32 0, ptr %sent monotonic, align 4
  ret void
}}

; Record the core of this thread, and allow it any core again.  Shared state is written only when
; it changes.
define internal void @settle(i64 %rank) {{
entry:
  %place = getelementptr [{MOST} x i32], ptr @places, i64 0, i64 %rank
  %before = load atomic i32, ptr %place monotonic, align 4
  %cpu = call i32 @sched_getcpu()
  %moved = icmp ne i32 %cpu, %before
  br i1 %moved, label %move, label %look
move:
  store atomic i32 %cpu, ptr %place monotonic, align 4
  br label %look
look:
  %sent = getelementptr [{MOST} x i32], ptr @sent, i64 0, i64 %rank
  %flag = load atomic i32, ptr %sent monotonic, align 4
  %was.sent = icmp eq i32 %flag, 1
  br i1 %was.sent, label %free, label %done
free:
  %taken = atomicrmw xchg ptr %sent, i32 0 acquire
  %home = getelementptr [{MOST} x [{_CORES_BYTES} x i8]], ptr @homes, i64 0, i64 %rank
  %set = call i32 @sched_setaffinity(i32 0, i64 {_CORES_BYTES}, ptr %home)
  br label %done
done:
  ret void
}}
"""
"""``send_off(rank, cpu)`` and ``forget(rank)`` are called by the caller of a region;
``settle(rank)`` is called by the threads."""
