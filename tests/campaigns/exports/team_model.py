"""The thread team as a state machine, of which every reachable state is visited.

It models ``@member``, ``@work``, ``@wake``, the leader's part of ``@ansorpy_team``, and
``@ansorpy_team_stop`` of :mod:`ansorpy.codegen.llvm.threads.team`.  A thread is at one of its
labels, named as there, and each step makes one access to shared memory.  A store waits in a buffer
of its thread and may reach memory at any later moment, but before the thread's next fence or
read-modify-write.  That is how x86 orders memory; the weaker orders of other processors are left to
ThreadSanitizer (:mod:`tests.campaigns.exports.team_sanitized`).

Left out: starting threads, which happens before the first region; callers that find the team busy,
since they touch none of this; the core a thread runs on; and the number of looks before a thread
sleeps, which is any number here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

__all__ = ["LEFT_OUT", "Broken", "Team", "explore"]

LEFT_OUT = (
    "fence of publish",
    "fence of stop",
    "fence of tired",
    "look of tired",
    "exchange of rise",
)
"""Parts of the protocol without which a wake-up can be lost."""


class Broken(AssertionError):
    """A state that must not be reachable."""


class Thread(NamedTuple):
    """A thread: its label, its registers, and its stores that are not yet written."""

    label: str
    number: int = 0
    """The region: that a member works on, or that the caller leads."""
    seen: int = 0
    function: int = 0
    pieces: int = 0
    tried: int = 0
    rank: int = 0
    """A member's own; of the caller, the one that it wakes."""
    piece: int = 0
    buffer: tuple[tuple[str, int], ...] = ()


Memory: TypeAlias = tuple[int, ...]
State: TypeAlias = tuple[Memory, tuple[Thread, ...]]
Step: TypeAlias = Callable[["_Turn"], Iterator[Thread]]


@dataclass(frozen=True)
class Team:
    """A team of *members* that runs regions of these numbers of pieces, and is stopped.

    ``function`` of a region is its number: so a piece that runs shows whose fields were read.
    """

    members: int
    counts: tuple[int, ...]
    left_out: str = ""

    @property
    def places(self) -> tuple[str, ...]:
        ranks = range(1, self.members + 1)
        return (
            "region", "function", "count", "undone", "quit", "done", "ended",
            *(f"piece {k}" for k in range(max(self.counts))),
            *(f"awake {r}" for r in ranks), *(f"sign {r}" for r in ranks),
        )  # fmt: skip

    def start(self) -> State:
        memory = tuple(int(place.startswith("awake")) for place in self.places)
        members = tuple(Thread("look", rank=r) for r in range(1, self.members + 1))
        return memory, (Thread("prepare"), *members)


def explore(team: Team) -> int:
    """Visit every state of *team*; returns their number.

    Raises:
        Broken: Some state is wrong; the message says how.
    """
    first = team.start()
    known, left = {first}, [first]
    while left:
        state = left.pop()
        following = {*_successors(team, state)}
        if not following:
            _demand_end(team, state)
        left += following - known
        known |= following
    return len(known)


def _demand_end(team: Team, state: State) -> None:
    memory, threads = state
    held = dict(zip(team.places, memory, strict=True))
    if any(thread.label != "end" for thread in threads):
        raise Broken(f"nobody can go on: {[thread.label for thread in threads]}, {held}")
    if any(held[f"sign {r}"] for r in range(1, team.members + 1)):
        raise Broken(f"a post was never waited for: {held}")


def _successors(team: Team, state: State) -> Iterator[State]:
    memory, threads = state
    for at, thread in enumerate(threads):
        if thread.buffer:
            (place, value), *rest = thread.buffer
            written = _Turn(team, memory, threads, at)
            written.memory[written.index[place]] = value
            yield written.after(thread._replace(buffer=tuple(rest)))
        turn = _Turn(team, memory, threads, at)
        step = _CALLER.get(thread.label) if at == 0 else _MEMBER.get(thread.label)
        for found in step(turn) if step else ():
            _demand_no_lost_wake_up(turn, found)
            yield turn.after(found)


class _Turn:
    """One thread's access to memory, in a state."""

    def __init__(self, team: Team, memory: Memory, threads: tuple[Thread, ...], at: int) -> None:
        self.team, self.threads, self.at = team, threads, at
        self.me = threads[at]
        self.memory = list(memory)
        self.index = {place: k for k, place in enumerate(team.places)}

    def after(self, thread: Thread) -> State:
        others = self.threads
        return tuple(self.memory), (*others[: self.at], thread, *others[self.at + 1 :])

    def load(self, place: str) -> int:
        """What this thread sees: its own latest store, if that waits."""
        waiting = [value for name, value in self.me.buffer if name == place]
        return waiting[-1] if waiting else self.memory[self.index[place]]

    def exchange(self, place: str, value: int) -> int:
        """Read and write at once; only with an empty buffer."""
        old, self.memory[self.index[place]] = self.memory[self.index[place]], value
        return old

    def to(self, label: str, *stores: tuple[str, int], **registers: int) -> Thread:
        """This thread at another label, after *stores*."""
        return self.me._replace(label=label, buffer=(*self.me.buffer, *stores), **registers)

    @property
    def is_drained(self) -> bool:
        return not self.me.buffer

    def lacks(self, part: str) -> bool:
        return self.team.left_out == part


# The caller


def _prepare(turn: _Turn) -> Iterator[Thread]:
    me, counts = turn.me, turn.team.counts
    if me.number == len(counts):
        yield turn.to("stop", ("quit", 1))
        return
    number, count = me.number + 1, counts[me.number]
    fields = ("function", number), ("count", count), ("undone", count), ("piece 0", 2 * number + 1)
    pieces = ((f"piece {k}", 2 * number) for k in range(1, count))
    yield turn.to("publish", *fields, *pieces, ("region", number), number=number, pieces=count)


def _publish(turn: _Turn) -> Iterator[Thread]:
    if turn.is_drained or turn.lacks("fence of publish"):
        yield turn.to("call", rank=1)


def _call(turn: _Turn) -> Iterator[Thread]:
    """Wake the next member, if there is one: the load of ``@wake``."""
    me = turn.me
    if me.rank > min(turn.team.members, me.pieces - 1):
        yield turn.to("share", rank=0, tried=0)
    elif turn.load(f"awake {me.rank}") == 0:
        yield turn.to("shake")
    else:
        yield turn.to("call", rank=me.rank + 1)


def _shake(turn: _Turn) -> Iterator[Thread]:
    stops = turn.me.number == len(turn.team.counts) + 1
    follows = turn.to("join") if stops else turn.to("call", rank=turn.me.rank + 1)
    if turn.is_drained:
        mine = turn.exchange(f"awake {turn.me.rank}", 1) == 0
        yield turn.to("post") if mine else follows


def _post(turn: _Turn) -> Iterator[Thread]:
    me = turn.me
    turn.exchange(f"sign {me.rank}", turn.load(f"sign {me.rank}") + 1)
    stops = me.number == len(turn.team.counts) + 1
    yield turn.to("join") if stops else turn.to("call", rank=me.rank + 1)


def _share(turn: _Turn) -> Iterator[Thread]:
    _run(turn, turn.me.number, 0)
    yield turn.to("ran", function=turn.me.number, tried=-1)


def _await(turn: _Turn) -> Iterator[Thread]:
    if turn.load("undone") == 0:
        done = turn.exchange("done", 0)
        if done != (1 << turn.me.pieces) - 1:
            raise Broken(f"region {turn.me.number} ended with pieces {done:b}")
        turn.exchange("ended", turn.me.number)
        yield turn.to("prepare")


def _stop(turn: _Turn) -> Iterator[Thread]:
    if turn.is_drained or turn.lacks("fence of stop"):
        yield turn.to("end each", number=turn.me.number + 1, rank=1)


def _end_each(turn: _Turn) -> Iterator[Thread]:
    me = turn.me
    if me.rank > turn.team.members:
        yield turn.to("end")
    elif turn.load(f"awake {me.rank}") == 0:
        yield turn.to("shake")
    else:
        yield turn.to("join")


def _join(turn: _Turn) -> Iterator[Thread]:
    if turn.threads[turn.me.rank].label == "end":
        yield turn.to("end each", rank=turn.me.rank + 1)


# Members


def _look(turn: _Turn) -> Iterator[Thread]:
    number = turn.load("region")
    yield turn.to("wait") if number == turn.me.seen else turn.to("function", number=number)


def _read_function(turn: _Turn) -> Iterator[Thread]:
    yield turn.to("count", function=turn.load("function"))


def _read_count(turn: _Turn) -> Iterator[Thread]:
    count = turn.load("count")
    takes_part = turn.me.rank < count
    yield turn.to("next", pieces=count, tried=0) if takes_part else _worked(turn)


def _wait(turn: _Turn) -> Iterator[Thread]:
    if turn.load("quit"):
        yield turn.to("end")
        return
    yield turn.to("look")
    yield turn.to("fence of tired", (f"awake {turn.me.rank}", 0))


def _tired(turn: _Turn) -> Iterator[Thread]:
    if turn.is_drained or turn.lacks("fence of tired"):
        yield turn.to("sleep" if turn.lacks("look of tired") else "look of tired")


def _look_again(turn: _Turn) -> Iterator[Thread]:
    same = turn.load("region") == turn.me.seen
    yield turn.to("quit of tired" if same else "rise")


def _look_at_quit(turn: _Turn) -> Iterator[Thread]:
    yield turn.to("rise" if turn.load("quit") else "sleep")


def _rise(turn: _Turn) -> Iterator[Thread]:
    awake = f"awake {turn.me.rank}"
    if turn.lacks("exchange of rise"):
        yield turn.to("look", (awake, 1))
    elif turn.is_drained:
        yield turn.to("sleep" if turn.exchange(awake, 1) == 1 else "look")


def _sleep(turn: _Turn) -> Iterator[Thread]:
    sign = f"sign {turn.me.rank}"
    if turn.load(sign):
        turn.exchange(sign, turn.load(sign) - 1)
        yield turn.to("look")


# Pieces: @work, by the caller and by members


def _next(turn: _Turn) -> Iterator[Thread]:
    me = turn.me
    if me.tried == me.pieces:
        yield turn.to("await") if turn.at == 0 else _worked(turn)
        return
    piece = (me.rank + me.tried) % me.pieces
    is_free = turn.load(f"piece {piece}") == 2 * me.number
    yield turn.to("take", piece=piece) if is_free else turn.to("next", tried=me.tried + 1)


def _take(turn: _Turn) -> Iterator[Thread]:
    me, free = turn.me, 2 * turn.me.number
    if not turn.is_drained:
        return
    place = f"piece {me.piece}"
    if turn.load(place) != free:
        yield turn.to("next", tried=me.tried + 1)
        return
    turn.exchange(place, free + 1)
    _run(turn, me.function, me.piece)
    yield turn.to("ran")


def _ran(turn: _Turn) -> Iterator[Thread]:
    if turn.is_drained:
        turn.exchange("undone", turn.load("undone") - 1)
        yield turn.to("next", tried=turn.me.tried + 1)


def _worked(turn: _Turn) -> Thread:
    return turn.to("look", seen=turn.me.number, number=0, function=0, pieces=0, tried=0, piece=0)


def _run(turn: _Turn, function: int, piece: int) -> None:
    number, count = turn.me.number, turn.me.pieces
    if function != number or count != turn.team.counts[number - 1]:
        raise Broken(f"piece {piece} of region {number} ran with fields of another")
    if turn.memory[turn.index["ended"]] >= number:
        raise Broken(f"piece {piece} ran after the end of region {number}")
    done = turn.memory[turn.index["done"]]
    if done >> piece & 1:
        raise Broken(f"piece {piece} of region {number} ran twice")
    turn.exchange("done", done | 1 << piece)


def _demand_no_lost_wake_up(turn: _Turn, found: Thread) -> None:
    """Once a caller has woken all, none that takes part sleeps."""
    if turn.at != 0 or found.label != "share":
        return
    for member in turn.threads[1 : found.pieces]:
        sleeps = member.label == "sleep" and not turn.memory[turn.index[f"sign {member.rank}"]]
        if sleeps and member.seen < found.number:
            raise Broken(f"member {member.rank} sleeps through region {found.number}")


_WORK: dict[str, Step] = {"next": _next, "take": _take, "ran": _ran}
_CALLER: dict[str, Step] = _WORK | {
    "prepare": _prepare, "publish": _publish, "call": _call, "shake": _shake, "post": _post,
    "share": _share, "await": _await, "stop": _stop, "end each": _end_each, "join": _join,
}  # fmt: skip
_MEMBER: dict[str, Step] = _WORK | {
    "look": _look, "function": _read_function, "count": _read_count, "wait": _wait,
    "fence of tired": _tired, "look of tired": _look_again, "quit of tired": _look_at_quit,
    "rise": _rise, "sleep": _sleep,
}  # fmt: skip
