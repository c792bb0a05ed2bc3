"""The thread team that runs parallel loops, as compiled code.

A region is one execution of a parallel loop, cut into as many pieces as threads were requested.
The caller and the threads of the team take pieces, each its own piece first, then any that are
still free.  So a region ends when its pieces are done, not when all threads have arrived: a thread
that the system has descheduled, or that does not wake in time, costs only its help.  (With a
barrier of spinning threads, as in libgomp, each region waits for the last thread; if two threads
share a core, a region then takes a time slice: 92 ms per run were measured instead of 0.5 ms.)

Waiting threads spin, then yield the core, then sleep.  They keep off the caller's core
(:mod:`ansorpy.codegen.llvm.threads.team_cores`).  Threads start with the first region that needs
them.  A team runs one region at a time: a caller that finds it busy runs its region alone.  A child
process starts its own team (:mod:`ansorpy.codegen.llvm.threads.team_state`).

States of a thread of the team (labels of ``@member``); ``seen`` is the last region it has handled:

- ``look``: read the region number.  If it is new, ``join``, and ``help`` if the region has a piece
  of this rank; then look again.  If not, ``wait``, which ends the thread if ``@quit`` is set.
- ``away``: spin (``_SPINS`` times), then yield (``_YIELDS`` times), looking again after each.
- ``tired``: set the thread's ``@awake`` flag to 0, then read region and ``@quit`` once more.
  If neither has changed, ``sleep`` on the semaphore; otherwise ``rise``.
- ``rise``: exchange the flag for 1.  If it was 0, nobody woke the thread: go on.  If it was 1, a
  waker got there first and posts the semaphore, so ``sleep`` to consume that post.
- ``shake`` (in ``@wake``, run by the caller or by ``STOP``): exchange the flag for 1; the waker
  that finds 0 posts.  So each change from 0 to 1 by a waker is matched by one post and one wait.

Why this is correct without locks:

- Start: the fields of ``@region`` and the pieces are written before the release store of its
  number; a thread reads them after its acquire load of that number.
- Late threads: a thread that read number n may find the fields of a later region.  But region n
  ends only when all its pieces are taken, and pieces are never marked ``2 n`` again, so each
  ``cmpxchg`` of that thread fails.  A ``cmpxchg`` that succeeds precedes the end of region n, so
  the fields were those of n.
- End: each finished piece decrements ``@undone`` with release; the decrements form one release
  sequence, so the caller's acquire load of 0 sees all writes of all pieces, and only then may the
  next region overwrite the fields.
- Next caller: the release store of 0 to ``@busy`` pairs with the acquire ``cmpxchg`` that takes it.
- Sleep: a thread clears ``@awake``, then reads the region and ``@quit``; a waker writes one of
  these, then reads ``@awake``.  Both execute a ``seq_cst`` fence in between, so at least one sees
  the other's write, and no wake-up is lost.
"""

from __future__ import annotations

from ansorpy.codegen.llvm.emit.functions import TEAM
from ansorpy.codegen.llvm.objects.build import compile_ir
from ansorpy.codegen.llvm.threads.team_cores import CORES, MOST
from ansorpy.codegen.llvm.threads.team_state import STATE
from ansorpy.target import Target

__all__ = ["STOP", "ending_with_library", "needs_team", "team_object", "team_source"]

STOP = "ansorpy_team_stop"
"""``void ansorpy_team_stop(void)``: end and join the threads; later regions run alone."""

_SPINS = 2000
"""Reads of the region number before a thread yields its core: about 40 µs."""

_YIELDS = 10_000
"""Yields before a thread sleeps: a few milliseconds if no other thread wants the core."""

_SEMAPHORE_BYTES = 64
"""At least ``sizeof(sem_t)`` of any C library (glibc: 32), rounded up to a cache line."""

_SIGNALS_BYTES = 128
_SETMASK = 2


def needs_team(image: bytes) -> bool:
    """True if an object file has parallel loops and thus refers to the team."""
    return TEAM.encode() in image


def team_object(target: Target, *, ends_with_library: bool) -> bytes:
    """The object file that defines :data:`TEAM`.

    Args:
        ends_with_library: Join the threads when the library that holds the object is unloaded.
    """
    source = ending_with_library(target) if ends_with_library else team_source(target)
    return compile_ir(source, target)


def ending_with_library(target: Target) -> str:
    """:func:`team_source` whose threads are joined when the library with it is unloaded."""
    return team_source(target) + _ENDS_WITH_LIBRARY


def team_source(target: Target) -> str:
    """The team as LLVM IR."""
    triple = f'target triple = "{target.triple}"\n'
    return triple + _pause(target) + STATE + _SOURCE + CORES


_PAUSES = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}
"""By architecture: declaration and call of the spin-wait hint."""


def _pause(target: Target) -> str:
    declaration, call = _PAUSES.get(target.triple.split("-")[0], ("", ""))
    return f"{declaration}\ndefine internal void @pause() {{\n  {call}\n  ret void\n}}\n"


_SOURCE = f"""
declare i32 @sched_yield()
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i32 @sem_init(ptr, i32, i32)
declare i32 @sem_wait(ptr)
declare i32 @sem_post(ptr)

@quit = internal global i32 0, align 64
@awake = internal global [{MOST} x i32] zeroinitializer, align 64
@signs = internal global [{MOST} x [{_SEMAPHORE_BYTES} x i8]] zeroinitializer, align 64
@threads = internal global [{MOST} x i64] zeroinitializer, align 64

define internal void @look_away(i64 %looks) {{
  %short = icmp ult i64 %looks, {_SPINS}
  br i1 %short, label %spin, label %yield
spin:
  call void @pause()
  ret void
yield:
  %done = call i32 @sched_yield()
  ret void
}}

; Take pieces of region %number and run them, starting with the piece of %rank.
define internal void @work(i64 %number, ptr %f, ptr %data, i64 %count, i64 %rank) {{
entry:
  %free = shl i64 %number, 1
  %taken = or i64 %free, 1
  br label %next
next:
  %tried = phi i64 [ 0, %entry ], [ %tried.next, %after ]
  %from = add i64 %rank, %tried
  %past = sub i64 %from, %count
  %wraps = icmp uge i64 %from, %count
  %piece = select i1 %wraps, i64 %past, i64 %from
  %place = getelementptr [{MOST} x i64], ptr @pieces, i64 0, i64 %piece
  %now = load atomic i64, ptr %place monotonic, align 8
  %is.free = icmp eq i64 %now, %free
  br i1 %is.free, label %take, label %after
take:
  %pair = cmpxchg ptr %place, i64 %free, i64 %taken acq_rel monotonic
  %won = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %won, label %run, label %after
run:
  call void %f(ptr %data, i64 %piece, i64 %count)
  %before = atomicrmw sub ptr @undone, i64 1 release
  br label %after
after:
  %tried.next = add i64 %tried, 1
  %more = icmp ult i64 %tried.next, %count
  br i1 %more, label %next, label %done
done:
  ret void
}}

define internal ptr @member(ptr %argument) {{
entry:
  %rank = ptrtoint ptr %argument to i64
  %awake = getelementptr [{MOST} x i32], ptr @awake, i64 0, i64 %rank
  %sign = getelementptr [{MOST} x [{_SEMAPHORE_BYTES} x i8]], ptr @signs, i64 0, i64 %rank
  br label %look
look:
  %seen = phi i64 [ 0, %entry ], [ %seen, %away ], [ %seen, %away.for.long ],
                  [ %seen, %woken ], [ %number, %worked ]
  %looks = phi i64 [ 0, %entry ], [ %looks.next, %away ], [ %looks.next, %away.for.long ],
                   [ 0, %woken ], [ 0, %worked ]
  %number = load atomic i64, ptr @region acquire, align 8
  %is.new = icmp ne i64 %number, %seen
  br i1 %is.new, label %join, label %wait
join:
  %f = load atomic ptr, ptr @function monotonic, align 8
  %data = load atomic ptr, ptr @data monotonic, align 8
  %count = load atomic i64, ptr @count monotonic, align 8
  %takes.part = icmp ult i64 %rank, %count
  br i1 %takes.part, label %help, label %worked
help:
  call void @settle(i64 %rank)
  call void @work(i64 %number, ptr %f, ptr %data, i64 %count, i64 %rank)
  br label %worked
worked:
  br label %look
wait:
  %quit = load atomic i32, ptr @quit monotonic, align 4
  %ends = icmp ne i32 %quit, 0
  br i1 %ends, label %end, label %stay
stay:
  %looks.next = add i64 %looks, 1
  %long = icmp ugt i64 %looks, {_SPINS + _YIELDS}
  br i1 %long, label %tired, label %away
away:
  call void @look_away(i64 %looks)
  %yields = icmp uge i64 %looks, {_SPINS}
  br i1 %yields, label %away.for.long, label %look
away.for.long:
  call void @settle(i64 %rank)
  br label %look
tired:
  ; The caller reads @awake after it publishes a region; at least one of the two sees the other.
  store atomic i32 0, ptr %awake seq_cst, align 4
  fence seq_cst
  %again = load atomic i64, ptr @region seq_cst, align 8
  %quit.again = load atomic i32, ptr @quit seq_cst, align 4
  %same = icmp eq i64 %again, %seen
  %stays = icmp eq i32 %quit.again, 0
  %sleeps = and i1 %same, %stays
  br i1 %sleeps, label %sleep, label %rise
rise:
  %was = atomicrmw xchg ptr %awake, i32 1 seq_cst
  %called = icmp eq i32 %was, 1
  br i1 %called, label %sleep, label %woken
sleep:
  %status = call i32 @sem_wait(ptr %sign)
  %interrupted = icmp ne i32 %status, 0
  br i1 %interrupted, label %sleep, label %woken
woken:
  br label %look
end:
  ret ptr null
}}

define internal void @wake(i64 %rank) {{
  %awake = getelementptr [{MOST} x i32], ptr @awake, i64 0, i64 %rank
  %now = load atomic i32, ptr %awake seq_cst, align 4
  %asleep = icmp eq i32 %now, 0
  br i1 %asleep, label %shake, label %done
shake:
  %was = atomicrmw xchg ptr %awake, i32 1 seq_cst
  %mine = icmp eq i32 %was, 0
  br i1 %mine, label %post, label %done
post:
  %cpu = call i32 @sched_getcpu()
  call void @send_off(i64 %rank, i32 %cpu)
  %sign = getelementptr [{MOST} x [{_SEMAPHORE_BYTES} x i8]], ptr @signs, i64 0, i64 %rank
  %status = call i32 @sem_post(ptr %sign)
  br label %done
done:
  ret void
}}

; Start threads until there are %wanted, or the system gives no more.  A child process whose system
; has not cleared the state runs its regions alone.
define internal void @recruit(i64 %wanted) {{
entry:
  %all = alloca [{_SIGNALS_BYTES} x i8], align 8
  %old = alloca [{_SIGNALS_BYTES} x i8], align 8
  %quit = load atomic i32, ptr @quit monotonic, align 4
  %ends = icmp ne i32 %quit, 0
  br i1 %ends, label %done, label %begin
begin:
  %pid = call i32 @getpid()
  %owner = load atomic i32, ptr @owner monotonic, align 4
  %inherits = icmp ne i32 %owner, %pid
  br i1 %inherits, label %done, label %ask
ask:
  ; Block all signals, so that only the program's own threads receive them.
  %filled = call i32 @sigfillset(ptr %all)
  %blocked = call i32 @pthread_sigmask(i32 {_SETMASK}, ptr %all, ptr %old)
  br label %next
next:
  %members = load atomic i64, ptr @members monotonic, align 8
  %fewer = icmp ult i64 %members, %wanted
  br i1 %fewer, label %start, label %enough
start:
  %rank = add i64 %members, 1
  %sign = getelementptr [{MOST} x [{_SEMAPHORE_BYTES} x i8]], ptr @signs, i64 0, i64 %rank
  %made = call i32 @sem_init(ptr %sign, i32 0, i32 0)
  %awake = getelementptr [{MOST} x i32], ptr @awake, i64 0, i64 %rank
  store atomic i32 1, ptr %awake seq_cst, align 4
  call void @forget(i64 %rank)
  %thread = getelementptr [{MOST} x i64], ptr @threads, i64 0, i64 %rank
  %argument = inttoptr i64 %rank to ptr
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @member, ptr %argument)
  %runs = icmp eq i32 %failed, 0
  br i1 %runs, label %count, label %enough
count:
  store atomic i64 %rank, ptr @members seq_cst, align 8
  br label %next
enough:
  %restored = call i32 @pthread_sigmask(i32 {_SETMASK}, ptr %old, ptr null)
  br label %done
done:
  ret void
}}

define void @{TEAM}(ptr %f, ptr %data, i32 %threads) {{
entry:
  %asked = zext i32 %threads to i64
  %large = icmp ugt i64 %asked, {MOST}
  %count = select i1 %large, i64 {MOST}, i64 %asked
  %owner = load atomic i32, ptr @owner acquire, align 4
  %is.new = icmp eq i32 %owner, 0
  br i1 %is.new, label %start, label %take
start:
  call void @own()
  br label %take
take:
  %pair = cmpxchg ptr @busy, i32 0, i32 1 acq_rel monotonic
  %mine = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %mine, label %lead, label %alone
alone:
  %p = phi i64 [ 0, %take ], [ %p.next, %alone ]
  call void %f(ptr %data, i64 %p, i64 %count)
  %p.next = add i64 %p, 1
  %more = icmp ult i64 %p.next, %count
  br i1 %more, label %alone, label %end
lead:
  %others = sub i64 %count, 1
  %members = load atomic i64, ptr @members monotonic, align 8
  %few = icmp ult i64 %members, %others
  br i1 %few, label %grow, label %prepare
grow:
  call void @recruit(i64 %others)
  br label %prepare
prepare:
  %last = load atomic i64, ptr @region monotonic, align 8
  %number = add i64 %last, 1
  %free = shl i64 %number, 1
  %taken = or i64 %free, 1
  store atomic ptr %f, ptr @function monotonic, align 8
  store atomic ptr %data, ptr @data monotonic, align 8
  store atomic i64 %count, ptr @count monotonic, align 8
  store atomic i64 %count, ptr @undone monotonic, align 8
  store atomic i64 %taken, ptr @pieces monotonic, align 8
  %cpu = call i32 @sched_getcpu()
  br label %lay
lay:
  %k = phi i64 [ 1, %prepare ], [ %k.next, %laid ]
  %k.more = icmp ult i64 %k, %count
  br i1 %k.more, label %laying, label %publish
laying:
  %place = getelementptr [{MOST} x i64], ptr @pieces, i64 0, i64 %k
  store atomic i64 %free, ptr %place monotonic, align 8
  %seat = getelementptr [{MOST} x i32], ptr @places, i64 0, i64 %k
  %there.is = load atomic i32, ptr %seat monotonic, align 4
  %shares = icmp eq i32 %there.is, %cpu
  br i1 %shares, label %part, label %laid
part:
  call void @send_off(i64 %k, i32 %cpu)
  br label %laid
laid:
  %k.next = add i64 %k, 1
  br label %lay
publish:
  store atomic i64 %number, ptr @region release, align 8
  fence seq_cst
  %there = load atomic i64, ptr @members monotonic, align 8
  %too.many = icmp ugt i64 %there, %others
  %called = select i1 %too.many, i64 %others, i64 %there
  br label %call
call:
  %r = phi i64 [ 1, %publish ], [ %r.next, %calling ]
  %r.more = icmp ule i64 %r, %called
  br i1 %r.more, label %calling, label %share
calling:
  call void @wake(i64 %r)
  %r.next = add i64 %r, 1
  br label %call
share:
  call void %f(ptr %data, i64 0, i64 %count)
  %before = atomicrmw sub ptr @undone, i64 1 release
  call void @work(i64 %number, ptr %f, ptr %data, i64 %count, i64 0)
  br label %wait
wait:
  %looks = phi i64 [ 0, %share ], [ %looks.next, %away ]
  %undone = load atomic i64, ptr @undone acquire, align 8
  %finished = icmp eq i64 %undone, 0
  br i1 %finished, label %leave, label %away
away:
  call void @look_away(i64 %looks)
  %looks.next = add i64 %looks, 1
  br label %wait
leave:
  store atomic i32 0, ptr @busy release, align 4
  br label %end
end:
  ret void
}}

define void @{STOP}() {{
entry:
  %pid = call i32 @getpid()
  %owner = load i32, ptr @owner, align 4
  %own = icmp eq i32 %pid, %owner
  br i1 %own, label %begin, label %end
begin:
  store atomic i32 1, ptr @quit seq_cst, align 4
  fence seq_cst
  %members = atomicrmw xchg ptr @members, i64 0 seq_cst
  br label %next
next:
  %rank = phi i64 [ 1, %begin ], [ %rank.next, %stop ]
  %more = icmp ule i64 %rank, %members
  br i1 %more, label %stop, label %end
stop:
  call void @wake(i64 %rank)
  %thread = getelementptr [{MOST} x i64], ptr @threads, i64 0, i64 %rank
  %id = load i64, ptr %thread, align 8
  %joined = call i32 @pthread_join(i64 %id, ptr null)
  %rank.next = add i64 %rank, 1
  br label %next
end:
  ret void
}}
"""


_ENDS_WITH_LIBRARY = f"""
@llvm.global_dtors = appending global [1 x {{ i32, ptr, ptr }}]
  [{{ i32, ptr, ptr }} {{ i32 65535, ptr @{STOP}, ptr null }}]
"""
