"""Machine-wide locks on cores and GPUs, so that only one process at a time times on each.

Timing takes an exclusive lock on its cores; searching, training and building, which would disturb
it, take a shared lock.  Requests are served in order, so neither side starves.  A process that
waits longer than a moment logs which processes it waits for, each of them once.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from errno import EADDRINUSE
from hashlib import sha256
from math import inf
from pathlib import Path
from socket import AF_UNIX, socket
from threading import Event, Lock, Thread, Timer

from ansorpy.deadline import OutOfTime, left_s, until
from ansorpy.errors import AnsorpyError, UsageError
from ansorpy.measure.workers.processes import described_process, usable_cores
from ansorpy.profiler import Activity, profiled

__all__ = [
    "PATIENCE_S", "WAIT_S", "Undisputed", "WaitLog", "holders", "lock_cores", "lock_file",
    "lock_gpus", "share_cores",
]  # fmt: skip

_LOG = logging.getLogger(__name__)

PATIENCE_S = 1.0
"""Seconds of waiting before it is logged; another tuner's batch may end in the meantime."""

WAIT_S = 60.0
"""Seconds that :class:`Undisputed` waits: a holder may be stopped, or wait for this process."""


@contextmanager
def lock_cores(
    cores: Sequence[int], folder: Path | None = None, *, shared: bool = False
) -> Iterator[None]:
    """Lock *cores* until the block ends; waits while another process on this machine holds any.

    Raises:
        OutOfTime: The deadline (:mod:`ansorpy.deadline`) passed before the locks were free.

    *shared* holders exclude only exclusive ones.  There is one lock file per core, taken in
    ascending order, so overlapping sets exclude each other and never deadlock; a waiting process
    holds a second file, so that nobody overtakes it.  Calls must not be nested: a process would
    wait for itself.  The kernel releases the locks when the process dies.
    """
    with _locked([f"core {core}" for core in sorted(set(cores))], folder, shared):
        yield


@contextmanager
def share_cores(folder: Path | None = None) -> Iterator[None]:
    """Hold a shared lock on the usable cores while computing, so that nobody times on them.

    Past the deadline it no longer waits for the lock: little is computed then.
    """
    with ExitStack() as held:
        with suppress(OutOfTime):
            held.enter_context(lock_cores(usable_cores(), folder, shared=True))
        yield


@contextmanager
def lock_gpus(places: Sequence[str], folder: Path | None = None) -> Iterator[None]:
    """Lock GPUs, identified by their bus addresses (*places*), exclusively (:func:`lock_cores`)."""
    with _locked([f"GPU {place}" for place in sorted(set(places))], folder, shared=False):
        yield


@contextmanager
def lock_file(path: Path) -> Iterator[None]:
    """Be the only one on this machine who writes *path* until the block ends.

    What is locked is a name of Linux's abstract sockets, so no file is left behind.

    Raises:
        UsageError: Somebody else is writing it.
    """
    digest = sha256(os.fsencode(path.resolve())).hexdigest()
    with socket(AF_UNIX) as held:
        try:
            held.bind(f"\0ansorpy-file-{digest}")
        except OSError as error:
            if error.errno != EADDRINUSE:
                raise
            raise UsageError(
                f"another process is writing {path}", hint="wait for it, or name another file"
            ) from None
        yield


class Undisputed:
    """Keeps tuners from all usable cores, and from the GPUs at these bus addresses, while timing.

    It waits a minute at most: later timings wait no more, until the machine has been free again.
    """

    def __init__(self, gpus: Sequence[str] = ()) -> None:
        self._gpus, self._wait_s = gpus, WAIT_S

    @contextmanager
    def held(self) -> Iterator[bool]:
        """Hold them until the block ends; the value is whether it has them all."""
        has_all = False
        with ExitStack() as locks:
            with suppress(OutOfTime), until(time.monotonic() + self._wait_s):
                locks.enter_context(lock_cores(usable_cores()))
                locks.enter_context(lock_gpus(self._gpus))
                has_all = True
            if not has_all and self._wait_s:
                _LOG.warning("no longer waiting: times are taken while a tuner may use the machine")
            self._wait_s = WAIT_S if has_all else 0.0
            yield has_all


@contextmanager
def _locked(units: Sequence[str], folder: Path | None, shared: bool) -> Iterator[None]:
    """Lock *units*, which every process takes in this order."""
    where = Path(tempfile.gettempdir()) if folder is None else folder
    with ExitStack() as held:
        for unit in units:
            descriptor = _open(where / f"{_file(unit)}.lock")
            held.callback(_release, descriptor)
            with profiled(Activity.WAIT), _turn(unit, where):
                _take(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, unit)
        yield


def _file(unit: str) -> str:
    """``core 3`` -> ``ansorpy-core-3``."""
    return f"ansorpy-{re.sub('[^a-z0-9]+', '-', unit.lower())}"


@contextmanager
def _turn(unit: str, where: Path) -> Iterator[None]:
    """Serve in order of arrival: otherwise overlapping shared holders starve exclusive ones."""
    descriptor = _open(where / f"{_file(unit)}.turn")
    try:
        _take(descriptor, fcntl.LOCK_EX, unit)
        yield
    finally:
        _release(descriptor)


def _take(descriptor: int, mode: int, unit: str) -> None:
    """Lock the open file; if that takes long, log which processes hold it."""
    try:
        fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        if left_s() <= 0:
            raise OutOfTime from None
        timer = Timer(PATIENCE_S, _WAIT_LOG.name_holders, (descriptor, unit))
        timer.daemon = True
        timer.start()
        try:
            if left_s() == inf:
                fcntl.flock(descriptor, mode)
            else:
                _Waiting(descriptor, mode).until_deadline()
        finally:
            timer.cancel()


class _Waiting:
    """A thread that waits for a file lock, because the kernel has no timeout for such a wait.

    It keeps its place in the queue, which polling would lose.  If the caller has given up, the
    thread releases the lock as soon as it gets it.
    """

    def __init__(self, descriptor: int, mode: int) -> None:
        self._descriptor = os.dup(descriptor)  # the same open file description, which owns the lock
        self._mode = mode
        self._came, self._guard, self._is_left = Event(), Lock(), False

    def until_deadline(self) -> None:
        """Wait for the lock; raises :class:`OutOfTime` once the deadline has passed."""
        Thread(target=self._wait, daemon=True).start()
        try:
            self._came.wait(max(0.0, left_s()))
        finally:
            with self._guard:
                self._is_left = not self._came.is_set()
        if self._is_left:
            raise OutOfTime

    def _wait(self) -> None:
        try:
            fcntl.flock(self._descriptor, self._mode)
            with self._guard:
                if self._is_left:
                    fcntl.flock(self._descriptor, fcntl.LOCK_UN)
                self._came.set()
        finally:
            os.close(self._descriptor)


class WaitLog:
    """Logs which processes hold a lock, naming each of them once."""

    def __init__(self) -> None:
        self._named: set[int] = set()

    def name_holders(self, descriptor: int, unit: str) -> None:
        """Log who holds the open file of *unit*; 0 stands for an unknown process.

        Threads of this process, which prepare a search in the background, are nobody to wait for.
        """
        known = holders(descriptor)
        found = [pid for pid in known if pid != os.getpid()]
        if known and not found:
            return
        if self._named.issuperset(found or (0,)):
            return
        self._named.update(found or (0,))
        who = ", ".join(map(described_process, found))
        _LOG.warning(
            "waiting for %s, which is using %s: only one process at a time may measure there",
            who or "another process", unit,
        )  # fmt: skip


_WAIT_LOG = WaitLog()


def holders(descriptor: int) -> list[int]:
    """The processes that hold a lock on the open file, as far as the kernel reports them."""
    try:
        status = os.fstat(descriptor)
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return []
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    found = set()
    for line in lines:
        words = line.split()  # "1: FLOCK ADVISORY WRITE 4711 fe:00:4242 0 EOF"; "->" marks waiters
        if len(words) > 5 and words[1] == "FLOCK" and words[5] == f"{device}:{status.st_ino}":
            found.add(int(words[4]))
    return sorted(found - {0})


def _release(descriptor: int) -> None:
    """Unlock before closing: a process forked meanwhile also holds the open file."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        try:
            # First without O_CREAT: in a sticky folder the kernel refuses O_CREAT on another
            # user's file, although opening it is allowed.
            return os.open(path, flags)
        except FileNotFoundError:
            descriptor = os.open(path, flags | os.O_CREAT, 0o666)
            with suppress(PermissionError):
                # Another user's tuner must be able to lock it too, whatever our umask is.
                os.fchmod(descriptor, 0o666)
            return descriptor
    except OSError as error:
        raise AnsorpyError(
            f"cannot lock a core or GPU for timing: {path}: {error.strerror}",
            hint="remove that file, or set TMPDIR to a folder you can write to",
        ) from None
