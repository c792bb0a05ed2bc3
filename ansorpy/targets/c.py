"""Any machine with a C11 compiler, described by its word size, vectors, cores and caches.

``c`` alone is scalar code for one core; the rest is written behind it::

    c:word=32,cores=1,l1=16KiB,l2=0          a microcontroller
    c:vector=128,registers=32,cores=4        four cores with 128-bit vectors
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from ansorpy.config import compiler_command
from ansorpy.errors import MissingDependency, UsageError
from ansorpy.target import KIB, MIB, Target

__all__ = ["SCALAR_BITS", "CMachines", "c_target"]

SCALAR_BITS = 32
"""``Target.vector_bits`` of scalar code: one float."""

_WORDS = (32, 64)
_VECTORS = (0, 64, 128, 256, 512, 1024, 2048)


@dataclass(frozen=True)
class _Machine:
    """The parameters of the target, by the names users write.

    ``word``: bits of an address.  ``vector``: bits of a vector, by the extensions of GCC and Clang;
    0 for scalar code.  ``registers``: vectors, or else scalars, that one thread holds.  ``cores``:
    threads of a parallel loop, by OpenMP if there are several.  ``l1``, ``l2``: bytes of one core's
    caches; ``l3``: of the cache that all share; 0 if there is none.  ``line``: bytes of its lines.
    """

    word: int = 64
    vector: int = 0
    registers: int = 16
    cores: int = 1
    l1: int = 32 * KIB
    l2: int = 256 * KIB
    l3: int = 0
    line: int = 64

    def __str__(self) -> str:
        return ",".join(f"{f.name}={getattr(self, f.name)}" for f in fields(self))


_SIZES = frozenset({"l1", "l2", "l3"})


class CMachines:
    """Machines with a C compiler (:class:`ansorpy.target.TargetKind`)."""

    @property
    def names(self) -> tuple[str, ...]:
        return ("c", f"c:KEY=VALUE,... ({', '.join(f.name for f in fields(_Machine))})")

    def parse(self, text: str) -> Target | None:
        name, colon, rest = text.partition(":")
        if name != "c":
            return None
        if colon and not rest:
            raise UsageError(f"target {text!r} has no parameters", hint="write c, or c:word=32")
        machine = _checked(text, _Machine(**_parameters(text, rest))) if rest else _Machine()
        return _target(text, machine)

    def runs_on_host(self, target: Target) -> bool:
        try:
            self.require_device(target)
        except MissingDependency:
            return False
        return True

    def require_device(self, target: Target) -> None:
        if compiler_command("cc", "gcc", "clang") is None:
            raise MissingDependency(
                "this machine has no C compiler", hint="install gcc or clang, or set CC"
            )

    def gpus(self, target: Target) -> tuple[int, ...]:
        return ()

    def threads(self, asked: int | None, target: Target) -> int:
        if asked is not None and asked > target.cores:
            raise UsageError(
                f"target {target.name} has {target.cores} core(s), too few for {asked} threads",
                hint=f"name it with cores={asked}",
            )
        return target.cores if asked is None else asked

    def with_threads(self, target: Target, threads: int) -> Target:
        return replace(target, cores=threads)

    def family(self, triple: str, vector_bits: str) -> str:
        return f"C with {vector_bits}-bit vectors" if int(vector_bits) > SCALAR_BITS else "scalar C"


def c_target(machine: Target) -> Target:
    """C for a CPU like *machine*: its vectors, cores and caches.

    Raises:
        UsageError: It is a GPU, whose programs are none for a CPU.
    """
    if machine.warp_size:
        raise UsageError(
            f"programs for {machine.name} cannot be written as C",
            hint="compile for a CPU, or with --target c (target= in Python)",
        )
    made = _Machine(
        vector=machine.vector_bits,
        registers=machine.vector_registers,
        cores=machine.cores,
        l1=machine.l1_bytes,
        l2=machine.l2_bytes,
        l3=machine.l3_bytes,
        line=machine.cache_line_bytes,
    )
    return _target(f"c:{made}", made)


def _target(name: str, machine: _Machine) -> Target:
    return Target(
        name=name,
        triple="",
        cpu=str(machine),
        features="",
        cores=machine.cores,
        vector_bits=machine.vector or SCALAR_BITS,
        vector_registers=machine.registers,
        l1_bytes=machine.l1,
        l2_bytes=max(machine.l1, machine.l2),
        l3_bytes=machine.l3,
        cache_line_bytes=machine.line,
        backend="c",
        word_bits=machine.word,
    )


def _parameters(text: str, rest: str) -> Mapping[str, int]:
    known = [f.name for f in fields(_Machine)]
    found: dict[str, int] = {}
    for part in rest.split(","):
        key, equals, value = part.partition("=")
        if key not in known or not equals:
            raise UsageError(
                f"{part!r} is no parameter of target {text!r}",
                hint=f"write KEY=VALUE with one of {', '.join(known)}",
            )
        if key in found:
            raise UsageError(f"target {text!r} has {key} twice", hint="give it once")
        found[key] = _number(text, key, value)
    return found


def _number(text: str, key: str, value: str) -> int:
    units = {"": 1, "KiB": KIB, "MiB": MIB} if key in _SIZES else {"": 1}
    match = re.fullmatch(r"(\d{1,12})([A-Za-z]*)", value)
    if match is None or match[2] not in units:
        form = "bytes, as in 32KiB" if key in _SIZES else "a whole number"
        raise UsageError(f"{key}={value} of target {text!r} is not {form}")
    return int(match[1]) * units[match[2]]


def _checked(text: str, machine: _Machine) -> _Machine:
    """*machine*, whose parameters must be possible ones."""
    for key, allowed in {"word": _WORDS, "vector": _VECTORS}.items():
        if getattr(machine, key) not in allowed:
            one_of = ", ".join(map(str, allowed))
            raise UsageError(
                f"{key}={getattr(machine, key)} of target {text!r} is none of {one_of}"
            )
    for key in ("registers", "cores", "l1", "line"):
        if getattr(machine, key) < 1:
            raise UsageError(f"{key} of target {text!r} must be at least 1")
    return machine
