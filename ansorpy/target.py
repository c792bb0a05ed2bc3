"""Target machines: cores, vectors, registers, caches; for CUDA, the limits of one SM.

``Target.parse("host" | "x86-64-v3" | "x86-64-v4" | "cortex-a76" | "rv64gcv" | "cuda" | "sm_90")``,
or an LLVM triple.  ``cuda`` is the GPU of this machine; ``sm_90`` is one that may be elsewhere.

A target names its backend.  Each layer that generates, measures or runs code has a table with one
row per backend; :data:`TARGET_KINDS` is the first of these tables.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Protocol

from ansorpy.errors import UsageError
from ansorpy.quantities import counted, whole_of
from ansorpy.rates import Rates
from ansorpy.registry import Registry

__all__ = ["TARGET_KINDS", "Target", "TargetKind", "family_of", "machine_name"]

KIB = 1 << 10
MIB = 1 << 20


@dataclass(frozen=True)
class Target:
    """A machine to generate code for; targets with equal fields are the same machine.

    Args:
        name: What the user asked for: ``"host"``, ``"x86-64-v3"``, ``"sm_90"``, or the triple.
        triple: LLVM triple; empty for CUDA.
        cpu: LLVM CPU name (``"znver5"``), or the CUDA architecture (``"sm_90"``; ``"sm_90a"``
            includes the instructions that only this architecture has).
        features: LLVM feature string (``"+avx2,+fma"``); sorted; empty when ``cpu`` implies them.
            For a CUDA device of this machine: its name, which keeps its timings separate.
        cores: Physical execution units: CPU cores, or SMs.
        vector_bits: Width of one vector register.
        vector_registers: Vector registers one thread can address (CUDA: its 32-bit registers).
        l1_bytes: First-level data cache of one core (CUDA: shared memory and L1 of one SM).
        l2_bytes: Second-level cache of one core (CUDA: the whole chip's).
        l3_bytes: Last-level cache shared by all cores; 0 when there is none, as on CUDA.
        backend: The name of the rows for this target in the tables of backends.
        word_bits: Width of an address, in which indices are computed where that suffices.
        capability: A GPU's architecture as a number (90 for ``sm_90``); 0 for a CPU, like all
            fields below except ``rates``.
        max_threads_per_block: Threads of a block.
        max_shared_bytes: Shared memory of a block that does not opt in to more.
        warp_size: Threads that execute together.
        max_vthread: Maximum number of virtual threads per thread in a schedule (TVM: 8).
        max_shared_optin_bytes: Shared memory of a block whose kernel opts in.
        registers_per_block: 32-bit registers available to the threads of one block.
        shared_per_sm_bytes: Shared memory that the blocks resident on one SM share.
        max_threads_per_sm: Threads that may be resident on one SM.
        max_blocks_per_sm: Blocks that may be resident on one SM.
        rates: Measured rates; ``None`` when not measured.  They are not part of the target's
            identity and are ignored when targets are compared.
    """

    name: str
    triple: str
    cpu: str
    features: str
    cores: int
    vector_bits: int
    vector_registers: int
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    cache_line_bytes: int = 64
    backend: str = "llvm"
    word_bits: int = 64
    capability: int = 0
    max_threads_per_block: int = 0
    max_shared_bytes: int = 0
    warp_size: int = 0
    max_vthread: int = 0
    max_shared_optin_bytes: int = 0
    registers_per_block: int = 0
    shared_per_sm_bytes: int = 0
    max_threads_per_sm: int = 0
    max_blocks_per_sm: int = 0
    rates: Rates | None = field(default=None, compare=False, repr=False)

    def __repr__(self) -> str:
        where = self.cpu if not self.triple else f"{self.cpu} of {self.triple}".removeprefix(" of ")
        known = [self.name, where if where != self.name else ""]
        known.append(counted(self.cores, "core"))
        return f"<Target {', '.join(filter(None, known))}, {self.vector_bits}-bit vectors>"

    @staticmethod
    def host() -> Target:
        """The machine this process runs on.  Loads LLVM on the first call."""
        return Target.parse("host")

    @staticmethod
    def parse(text: str) -> Target:
        """The target that *text* names.

        Raises:
            UsageError: No backend has such a target.
            MissingDependency: *text* is ``cuda``, and this machine has no CUDA device or no cupy.
        """
        names: list[str] = []
        for backend in TARGET_KINDS:
            kind = TARGET_KINDS.one(backend)
            found = kind.parse(text)
            if found is not None:
                return found
            names += kind.names
        hint = f"use one of {', '.join(names)}"
        if "," in text:
            hint = "name one here; the verbs compile and export take several"
        raise UsageError(f"unknown target {text!r}", hint=hint)

    def lanes(self, dtype_bits: int) -> int:
        """Vector lanes of *dtype_bits* bits in one vector register; at least 1."""
        return max(1, self.vector_bits // dtype_bits)

    @property
    def key(self) -> str:
        """Identifier of the machine; equal exactly when generated code and timings may be shared.

        It names the host by its CPU and features, not by the word ``host``, so that a record made
        on one machine is never used for another.
        """
        return "|".join((self.backend, self.triple, self.cpu, self.features, str(self.vector_bits)))

    def with_key(self, key: str) -> Target:
        """This target as that of another machine, which has this :attr:`key`."""
        backend, triple, cpu, features, bits = key.split("|")
        return replace(
            self, backend=backend, triple=triple, cpu=cpu, features=features, vector_bits=int(bits)
        )

    @property
    def family(self) -> str:
        """The kind of machine; programs are expected to rank alike on machines of one kind."""
        return family_of(self.key)

    def runs_on_host(self) -> bool:
        """True when code for this target can run on this machine, and so be timed."""
        return self._kind.runs_on_host(self)

    def require_device(self) -> None:
        """Check that this machine has devices of this kind at all.

        Raises:
            MissingDependency: It has none; the message says what is missing.
        """
        self._kind.require_device(self)

    def gpus(self) -> tuple[int, ...]:
        """Numbers of this machine's GPUs that can run code for this target, all of one kind."""
        return self._kind.gpus(self)

    def threads(self, asked: int | None) -> int:
        """The number of threads of a program: *asked*, or the default of this kind of machine.

        Raises:
            UsageError: It is no positive number, or programs for this machine cannot have so many.
        """
        return self._kind.threads(None if asked is None else whole_of(asked, "threads"), self)

    def with_threads(self, threads: int) -> Target:
        """The part of this machine that a program with *threads* threads uses."""
        return self._kind.with_threads(self, threads)

    @property
    def _kind(self) -> TargetKind:
        return TARGET_KINDS.one(self.backend)

    @property
    def feature_set(self) -> frozenset[str]:
        """The names of the features in use: those in ``features`` that are not taken away."""
        return _features_in(self.features)


@cache
def _features_in(text: str) -> frozenset[str]:
    names = filter(None, text.split(","))
    return frozenset(name.lstrip("+") for name in names if not name.startswith("-"))


def family_of(key: str) -> str:
    """:attr:`Target.family` of the target with this *key*.

    >>> family_of(Target.parse("x86-64-v3").key), family_of(Target.parse("sm_90").key)
    ('x86_64 with 256-bit vectors', 'cuda')
    """
    backend, triple, *_, bits = key.split("|")
    return TARGET_KINDS.one(backend).family(triple, bits) if backend in TARGET_KINDS else backend


class TargetKind(Protocol):
    """The machines that one backend generates code for: their names, and those present here."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names that a user may give, for messages."""

    def parse(self, text: str) -> Target | None:
        """The target that *text* names; None if it is not of this kind.

        Raises:
            UsageError: It is of this kind, but not valid.
            MissingDependency: It is this machine's device, but this machine has none.
        """

    def runs_on_host(self, target: Target) -> bool:
        """:meth:`Target.runs_on_host`."""

    def require_device(self, target: Target) -> None:
        """:meth:`Target.require_device`."""

    def gpus(self, target: Target) -> tuple[int, ...]:
        """:meth:`Target.gpus`."""

    def threads(self, asked: int | None, target: Target) -> int:
        """:meth:`Target.threads`."""

    def with_threads(self, target: Target, threads: int) -> Target:
        """:meth:`Target.with_threads`."""

    def family(self, triple: str, vector_bits: str) -> str:
        """:attr:`Target.family`, from fields of :attr:`Target.key`."""


TARGET_KINDS: Registry[TargetKind] = Registry(
    "backend",
    {
        "llvm": "ansorpy.targets.llvm:Cpus",
        "cuda": "ansorpy.targets.cuda:Gpus",
        "c": "ansorpy.targets.c:CMachines",
    },
)
"""The kind of machine of each backend, in the order in which names are tried."""


def machine_name() -> str:
    """The CPU's name as the operating system reports it."""
    try:
        with open("/proc/cpuinfo") as file:
            names = [
                line.split(":", 1)[1].strip() for line in file if line.startswith("model name")
            ]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
