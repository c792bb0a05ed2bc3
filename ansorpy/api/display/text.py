"""What a board says in one line, and the figures in it."""

from __future__ import annotations

from ansorpy.api.display.board import Board
from ansorpy.quantities import latency_text
from ansorpy.search.events import Phase

__all__ = ["clock", "comparisons", "failures_text", "line", "reached", "status"]

_DOING = {
    Phase.RESUMED: "reading earlier trials",
    Phase.SEARCHING: "measuring",
    Phase.MEASURED: "searching",
    Phase.RETIMED: "timing the fastest again",
}


def clock(seconds: float) -> str:
    """*seconds* as minutes and seconds, or as hours, minutes and seconds."""
    whole = max(0, round(seconds))
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def failures_text(board: Board) -> str:
    """Failed trials by kind; empty if there are none."""
    return ", ".join(f"{count} {kind.value}" for kind, count in board.failures.items())


def comparisons(board: Board) -> list[str]:
    """How the best total compares with the untuned programs and with peers."""
    total_s = board.total_s
    found: list[str] = []
    if total_s is None:
        return [f"{name} takes {latency_text(seconds)}" for name, seconds in board.peers.items()]
    if board.gain is not None and board.untuned_s is not None:
        found.append(f"{board.gain:.2f}x as fast as untuned ({latency_text(board.untuned_s)})")
    for name, seconds in board.peers.items():
        found.append(f"{seconds / total_s:.2f}x as fast as {name} ({latency_text(seconds)})")
    return found


def reached(board: Board) -> str:
    """What the search reached, in one line."""
    if board.total_s is not None:
        first = f"{latency_text(board.total_s)} in kernels"
    elif board.missing:
        first = f"{board.missing} of {len(board.rows)} tasks have no measured program"
    else:
        first = "all tasks have measured programs"
    return ", ".join([first, *comparisons(board)])


def status(board: Board) -> str:
    """What the search is doing."""
    if board.picked is not None:
        return f"program {board.picked[0]}/{board.picked[1]} chosen"
    if board.ended:
        return "choosing programs, and proving them"
    name = board.rows[board.current].name if board.current in board.rows else ""
    doing = _DOING.get(board.phase, "") if board.phase else ""
    return f"{doing} {name}".strip() or "preparing"


def line(board: Board) -> str:
    """Trials, best total, the current task's best time, failures by kind, and time left."""
    if board.picked is not None:
        return status(board)
    limit = "" if board.trial_limit is None else f"/{board.trial_limit}"
    parts = [f"trials {board.trials}{limit}"]
    if board.total_s is not None:
        gain = "" if board.gain is None else f" ({board.gain:.2f}x untuned)"
        parts.append(f"best {latency_text(board.total_s)}{gain}")
    if board.current in board.rows:
        row = board.rows[board.current]
        parts.append(f"{row.name}: {'-' if row.best_s is None else latency_text(row.best_s)}")
    failed, left_s = failures_text(board), board.left_s()
    if failed:
        parts.append(f"failed {failed}")
    if left_s is not None:
        parts.append(f"{clock(left_s)} left")
    return "  ".join(parts)
