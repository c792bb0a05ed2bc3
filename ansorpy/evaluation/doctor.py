"""Checks of what works on this machine, with advice on what to install for the rest."""

from __future__ import annotations

import ctypes
import importlib.metadata
import json
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ansorpy.codegen.cuda.device.nvrtc import architectures, version
from ansorpy.config import (
    CALIBRATE,
    KNOBS,
    available_cores,
    cgroup_quota,
    default_threads,
)
from ansorpy.errors import AnsorpyError, ForeignFile, MissingDependency
from ansorpy.evaluation.tables import Table
from ansorpy.measure.fleet.base import offer
from ansorpy.measure.probe.calibrate import calibrated, kept_rates
from ansorpy.quantities import bytes_text
from ansorpy.rates import Rates
from ansorpy.runtime.library.linker import find_linker
from ansorpy.target import Target, machine_name

__all__ = ["Examination", "Finding", "environment_table", "examine"]


@dataclass(frozen=True)
class Finding:
    """One capability: whether it is present, details, and what would provide it."""

    name: str
    ok: bool
    needed: bool
    detail: str
    advice: str = ""


@dataclass(frozen=True)
class Examination:
    """All findings; the ``needed`` ones determine whether this machine can tune and run at all."""

    findings: tuple[Finding, ...]
    rates: Rates | None = None

    @property
    def ok(self) -> bool:
        """True when nothing is missing that every use needs."""
        return all(f.ok for f in self.findings if f.needed)

    def to_dict(self) -> dict[str, Any]:
        """The examination as JSON-serializable values."""
        rates = None if self.rates is None else self.rates.to_dict()
        return {"ok": self.ok, "findings": [vars(f) for f in self.findings], "rates": rates}

    def table(self) -> Table:
        """One row per finding, with advice where something is missing."""
        rows = tuple(
            (
                "ok" if f.ok else "MISSING" if f.needed else "absent",
                f.name,
                f.detail if f.ok else f"{f.detail}; {f.advice}" if f.advice else f.detail,
            )
            for f in self.findings
        )
        return Table("", ("", "what", "found"), rows)

    def demand(self) -> None:
        """Raise :class:`MissingDependency` for the first needed capability that is absent."""
        for f in self.findings:
            if f.needed and not f.ok:
                raise MissingDependency(f"{f.name}: {f.detail}", hint=f.advice or None)


def examine(*, calibrate: bool = False) -> Examination:
    """Check Python, CPU, libgomp, linker, CUDA and the packages; starts no search.

    Args:
        calibrate: Measure the machine's rates again, even if they are stored.
    """
    parts = (_python, _cpu, _threads, _worker, _llvm, _libgomp, _linker, _cuda, _nvrtc)
    findings = [_guarded(part) for part in parts]
    findings += [_package(name, needed=True) for name in _NEEDED]
    findings += [_package(name, needed=False, extra=extra) for name, extra in _OPTIONAL]
    rates, found = _rates(calibrate)
    return Examination((*findings[:2], found, *findings[2:]), rates)


def environment_table() -> Table:
    """One row per environment variable: whether it is set, and what it does."""
    rows = tuple((knob.name, knob.text, knob.help) for knob in KNOBS)
    return Table("", ("variable", "set to", "what it does"), rows)


_NEEDED = (
    "numpy", "ml_dtypes", "islpy", "lightgbm", "scipy", "networkx", "pydantic", "onnx", "typer",
    "rich", "jinja2", "cachetools",
)  # fmt: skip
_OPTIONAL = (
    ("onnxruntime", "verify"), ("openvino", "bench"), ("torch", "torch"), ("ray", "ray"),
    ("vl-convert-python", "report"),
)  # fmt: skip


def _guarded(look: Callable[[], Finding]) -> Finding:
    """The finding of *look*, or one that reports the error it raised."""
    try:
        return look()
    except (AnsorpyError, ImportError, OSError) as error:
        name = look.__name__.lstrip("_")
        return Finding(name, False, True, str(error), "install the package named above")


def _python() -> Finding:
    version = platform.python_version()
    detail = f"{version}, {sys.executable}"
    return Finding("python", sys.version_info >= (3, 11), True, detail, "use Python 3.11 or newer")


def _cpu() -> Finding:
    host = Target.host()
    caches = ", ".join(
        f"L{level} {bytes_text(size)}"
        for level, size in enumerate((host.l1_bytes, host.l2_bytes, host.l3_bytes), 1)
    )
    detail = f"{machine_name()} ({host.cpu}), {host.vector_bits}-bit vectors, {caches}"
    return Finding("cpu", True, True, detail)


def _rates(again: bool) -> tuple[Rates | None, Finding]:
    """The rates of this machine, for the analytic cost model."""
    advice = "ansorpy doctor --calibrate measures, as does the first search"
    try:
        rates = calibrated(Target.host(), again=True).rates if again else kept_rates()
    except ForeignFile as error:
        return None, Finding("rates", False, False, error.message, advice)
    if rates is None:
        reason = "not measured yet" if CALIBRATE.get() else "ANSORPY_CALIBRATE=0"
        return None, Finding("rates", False, False, reason, advice)
    per_cycle = (
        f"{rates.vector_ops_per_cycle:.1f} multiply-adds, {rates.stores_per_cycle:.1f} stores"
    )
    detail = (
        f"{rates.clock_hz / 1e9:.2f} GHz; a cycle {per_cycle}, "
        f"{rates.l2_bytes_per_cycle:.0f} bytes of L2, {rates.l3_bytes_per_cycle:.0f} of L3; "
        f"all cores {rates.l3_bytes_per_s / 1e9:.0f} GB/s of L3; memory "
        f"{rates.dram_core_bytes_per_s / 1e9:.0f} GB/s one core, "
        f"{rates.dram_bytes_per_s / 1e9:.0f} all; fork and join {rates.fork_join_s * 1e6:.1f} µs"
    )
    return rates, Finding("rates", True, False, detail)


def _threads() -> Finding:
    quota = cgroup_quota()
    limit = "" if quota is None else f", control group grants {quota:g}"
    detail = f"{default_threads()} by default; {available_cores()} usable cores{limit}"
    return Finding("threads", True, True, detail)


def _worker() -> Finding:
    resources = json.dumps(offer(available_cores()))
    return Finding("as a node", True, False, f"ray start --resources='{resources}'")


def _llvm() -> Finding:
    import llvmlite
    from llvmlite import binding

    version = ".".join(map(str, binding.llvm_version_info))
    return Finding("llvm", True, True, f"{version} (llvmlite {llvmlite.__version__})")


def _libgomp() -> Finding:
    advice = "LightGBM needs it: apt install libgomp1, or dnf install libgomp"
    try:
        ctypes.CDLL("libgomp.so.1")
    except OSError as error:
        return Finding("libgomp", False, True, str(error), advice)
    return Finding("libgomp", True, True, "libgomp.so.1")


def _linker() -> Finding:
    """The linker, which only the export of libraries needs; other code runs from memory."""
    try:
        command = find_linker(Target.host()).command
    except MissingDependency as error:
        return Finding("linker", False, False, error.message, error.hint or "")
    return Finding("linker", True, False, " ".join(command))


def _cuda() -> Finding:
    try:
        ctypes.CDLL("libcuda.so.1")
        driver = "driver found"
    except OSError:
        driver = "no driver"
    version = _version("cupy-cuda13x")
    package = "cupy not installed" if version is None else f"cupy {version}"
    ok = driver == "driver found" and version is not None
    advice = "pip install 'ansorpy[cuda]'" if version is None else "install NVIDIA's driver"
    return Finding("cuda", ok, False, f"{driver}, {package}", advice)


def _nvrtc() -> Finding:
    """NVRTC, which compiles for GPUs whether this machine has one or not."""
    try:
        found = f"{version()}, compiles for {', '.join(architectures())}"
    except MissingDependency as error:
        return Finding("nvrtc", False, False, error.message, error.hint or "")
    return Finding("nvrtc", True, False, found)


def _package(name: str, *, needed: bool, extra: str = "") -> Finding:
    version = _version(name)
    advice = f"pip install {name}" if not extra else f"pip install 'ansorpy[{extra}]'"
    return Finding(name, version is not None, needed, version or "not installed", advice)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
