"""Every environment variable that ansorpy reads, in one table; no other module reads them.

Values are read on each use, so a test or a script may change them between calls.
"""

from __future__ import annotations

import math
import os
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from ansorpy.errors import MissingDependency, UsageError
from ansorpy.quantities import path_of, whole_of

__all__ = [
    "CACHE", "CALIBRATE", "DB", "DEBUG", "DEVICE", "DUMP", "KNOBS", "NUM_THREADS", "PERF", "SEED",
    "STATE", "VERIFY", "Knob", "available_cores", "cache_folder", "cgroup_quota",
    "compiler_command", "database_or_default", "default_threads", "ray_cluster", "ray_uses_tls",
    "seed_or_default", "state_folder",
]  # fmt: skip

T = TypeVar("T")


@dataclass(frozen=True)
class Knob(Generic[T]):
    """One environment variable: its name, its effect, the parser of its text, its default."""

    name: str
    help: str
    default: T
    parse: Callable[[str], T]
    expects: str

    @property
    def text(self) -> str:
        """What the variable is set to; empty if it is not set."""
        return os.environ.get(self.name, "").strip()

    def get(self) -> T:
        """The current value; raises :class:`UsageError` if the text cannot be parsed."""
        text = self.text
        if not text:
            return self.default
        try:
            return self.parse(text)
        except ValueError:
            raise UsageError(
                f"{self.name}={text!r} is not {self.expects}",
                hint=f"unset {self.name} or correct it",
            ) from None


def _at_least(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text)
        if value < least:
            raise ValueError(text)
        return value

    return parse


def _flag(text: str) -> bool:
    words = {"0": False, "false": False, "no": False, "1": True, "true": True, "yes": True}
    if text.lower() not in words:
        raise ValueError(text)
    return words[text.lower()]


def _path(text: str) -> Path:
    """The path *text*, in which a shell has not always expanded ``~``."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ValueError(text) from None


NUM_THREADS: Knob[int | None] = Knob(
    "ANSORPY_NUM_THREADS",
    "threads used when no number is given; default: the cores this process may use",
    None,
    _at_least(1),
    "a number of threads, 1 or more",
)
DEVICE: Knob[int | None] = Knob(
    "ANSORPY_DEVICE",
    "the GPU that programs run on, as CUDA counts; default: the first, and all for timing",
    None,
    _at_least(0),
    "a number of a GPU, 0 or more",
)
DEBUG: Knob[bool] = Knob(
    "ANSORPY_DEBUG", "1 shows where in ansorpy an internal error came from", False, _flag, "0 or 1"
)
DUMP: Knob[Path | None] = Knob(
    "ANSORPY_DUMP",
    "folder that receives the loop program and the LLVM IR (CUDA C) of everything that is built",
    None,
    _path,
    "a path",
)
VERIFY: Knob[bool] = Knob(
    "ANSORPY_VERIFY", "1 checks every loop program after lowering", False, _flag, "0 or 1"
)
SEED: Knob[int] = Knob(
    "ANSORPY_SEED", "seed used where no seed is given", 0, _at_least(0), "a seed, 0 or more"
)
CACHE: Knob[Path | None] = Knob(
    "ANSORPY_CACHE",
    "folder of what is worth keeping between runs; default: ansorpy in $XDG_CACHE_HOME or ~/.cache",
    None,
    _path,
    "a path",
)
DB: Knob[Path | None] = Knob(
    "ANSORPY_DB",
    "the tuning database used where none is named; default: tune.db in the folder of ANSORPY_CACHE",
    None,
    _path,
    "a path",
)
STATE: Knob[Path | None] = Knob(
    "ANSORPY_STATE",
    "folder of the key that signs your records; default: ansorpy in $XDG_STATE_HOME or"
    " ~/.local/state",
    None,
    _path,
    "a path",
)
CALIBRATE: Knob[bool] = Knob(
    "ANSORPY_CALIBRATE",
    "0 takes built-in figures of processors instead of measuring this machine once",
    True,
    _flag,
    "0 or 1",
)
PERF: Knob[bool] = Knob(
    "ANSORPY_PERF",
    "1 names the functions of programs in memory for Linux perf, in /tmp/perf-PID.map",
    False,
    _flag,
    "0 or 1",
)
KNOBS = (NUM_THREADS, DEVICE, DEBUG, DUMP, VERIFY, SEED, CACHE, DB, STATE, CALIBRATE, PERF)


def cache_folder() -> Path:
    """Folder for files kept between runs; it need not exist."""
    return CACHE.get() or _own_folder("XDG_CACHE_HOME", ".cache")


def state_folder() -> Path:
    """Folder of what belongs to this user on this machine; it need not exist."""
    return STATE.get() or _own_folder("XDG_STATE_HOME", ".local/state")


def _own_folder(variable: str, otherwise: str) -> Path:
    base = os.environ.get(variable, "").strip()
    try:
        return (Path(base) if base else Path.home() / otherwise) / "ansorpy"
    except RuntimeError:  # no HOME, and a user that the system does not know
        raise UsageError(
            "this user has no home folder for what ansorpy keeps",
            hint=f"set {CACHE.name} and {STATE.name} to folders, or HOME",
        ) from None


def database_or_default(named: str | Path | None) -> Path:
    """The tuning database *named*, or that of ``ANSORPY_DB``, or else one in the cache folder."""
    if named is not None:
        return path_of(named, "a database")
    return DB.get() or cache_folder() / "tune.db"


def default_threads() -> int:
    """The default number of threads: ``ANSORPY_NUM_THREADS``, otherwise the usable cores."""
    asked = NUM_THREADS.get()
    return available_cores() if asked is None else asked


def seed_or_default(seed: int | None) -> int:
    """*seed*, or that of ``ANSORPY_SEED`` if it is None.

    Raises:
        UsageError: It is no whole number, or negative.
    """
    return SEED.get() if seed is None else whole_of(seed, "seed", 0)


def compiler_command(*names: str) -> tuple[str, ...] | None:
    """The command of a C compiler: ``CC``, otherwise the first of *names* that is installed.

    Raises:
        MissingDependency: The command in ``CC`` does not exist.
    """
    asked = os.environ.get("CC", "").strip()
    if not asked:
        return next(((name,) for name in names if shutil.which(name) is not None), None)
    command = shlex.split(asked)
    if not command or shutil.which(command[0]) is None:
        raise MissingDependency(
            f"the environment sets CC={asked}, which does not exist",
            hint="install gcc or clang, or pip install 'ansorpy[export]', or set CC",
        )
    return tuple(command)


def ray_cluster() -> str | None:
    """The cluster that Ray's own ``RAY_ADDRESS`` names; ``None`` when unset."""
    return os.environ.get("RAY_ADDRESS", "").strip() or None


def ray_uses_tls() -> bool:
    """Whether Ray's own ``RAY_USE_TLS`` turns on encrypted connections."""
    return os.environ.get("RAY_USE_TLS", "").strip().lower() in ("1", "true")


def available_cores() -> int:
    """Cores this process may use: its affinity mask, limited by the cgroup's quota; at least 1."""
    affine = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    quota = cgroup_quota()
    return max(1, affine if quota is None else min(affine, math.ceil(quota)))


def cgroup_quota(
    root: Path = Path("/sys/fs/cgroup"), proc: Path = Path("/proc/self/cgroup")
) -> float | None:
    """The control group's CPU quota: the smallest limit along its path, or ``None``.

    Reads version 2 (``cpu.max``) and version 1 (``cpu.cfs_quota_us`` and ``cpu.cfs_period_us``).
    """
    limits = [
        limit
        for base, inner in _cgroup_folders(root, proc)
        for folder in (inner, *inner.parents)
        if folder.is_relative_to(base) and (limit := _folder_quota(folder)) is not None
    ]
    return min(limits, default=None)


def _cgroup_folders(root: Path, proc: Path) -> list[tuple[Path, Path]]:
    """(mount, own folder) of every hierarchy that may limit CPU time."""
    try:
        lines = proc.read_text().splitlines()
    except OSError:
        return [(root, root)]
    found = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            found.append((root, root / path.lstrip("/")))
        elif "cpu" in controllers.split(","):
            found.append((root / "cpu", root / "cpu" / path.lstrip("/")))
    return found


def _folder_quota(folder: Path) -> float | None:
    """The limit that one control-group folder sets, in CPUs."""
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text().strip()
    except OSError:
        return None
    return None if quota in ("max", "-1") else int(quota) / int(period)
