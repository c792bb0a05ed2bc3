"""The rates of this machine, measured once and stored in the cache folder."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ansorpy.config import CALIBRATE, available_cores, cache_folder
from ansorpy.errors import ForeignFile
from ansorpy.measure.devices import devices_of
from ansorpy.measure.probe import limits
from ansorpy.measure.workers.locks import lock_cores
from ansorpy.measure.workers.processes import usable_cores
from ansorpy.rates import Rates
from ansorpy.target import MIB, Target, machine_name
from ansorpy.writable import replacing

__all__ = ["MOST_BYTES", "PASSES", "calibrated", "kept_rates", "measure_rates", "rates_file"]

_FORMAT = "ansorpy-rates-2"
"""Incremented whenever a rate is measured in another way."""

PASSES = 3
"""Number of measurements of each rate of a core and its caches; the best counts, because
disturbances only slow down."""

_L1_BYTES = 16 << 10
MOST_BYTES = 1 << 30
"""The largest buffer that is read from memory."""


def calibrated(target: Target, *, again: bool = False) -> Target:
    """*target* with the rates of this machine, which are measured (two seconds) unless stored.

    GPUs and targets whose code does not run here are returned unchanged, as are all targets under
    ``ANSORPY_CALIBRATE=0``.  An unreadable stored file is replaced by a new measurement.

    Args:
        again: Measure even if rates are stored.
    """
    if not CALIBRATE.get() or not devices_of(target).has_rates or not target.runs_on_host():
        return target
    if target.rates is not None and not again:
        return target
    try:
        kept = None if again else kept_rates()
    except ForeignFile:
        kept = None
    if kept is None:
        kept = measure_rates()
        _keep(kept)
    if target.vector_bits < Target.host().vector_bits:  # *target* uses narrow vectors only
        kept = replace(kept, vector_ops_per_cycle=kept.narrow_ops_per_cycle)
    return replace(target, rates=kept)


def kept_rates() -> Rates | None:
    """Load the rates stored for this machine; ``None`` when it was never measured.

    Raises:
        ForeignFile: The contents of the file in the cache folder are not valid.
    """
    path = rates_file()
    try:
        content = json.loads(path.read_bytes())
    except OSError:
        return None
    except (RecursionError, ValueError):
        content = None
    if not isinstance(content, dict) or content.get("machine") != _machine():
        raise ForeignFile(f"{path} does not contain rates of this machine", hint="delete it")
    rates = content.get("rates")
    return Rates.from_dict(rates if isinstance(rates, dict) else {})


def rates_file() -> Path:
    """File with the rates of this machine; machines that share the cache folder have one each."""
    text = json.dumps(_machine(), sort_keys=True)
    return cache_folder() / f"rates-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def measure_rates() -> Rates:
    """Measure this machine while no other ansorpy process is measuring on it."""
    host, cores = Target.host(), available_cores()
    with lock_cores(usable_cores()):
        clock = _best(limits.clock_hz)
        ops = _best(lambda: limits.peak_flops(1))
        narrow = _best(lambda: limits.peak_flops(1, half=True))
        stored = _best(lambda: limits.write_bandwidth(1, _L1_BYTES))
        l2 = _best(lambda: limits.read_bandwidth(1, host.l2_bytes // 2))
        # Clearing so much memory takes longer than measuring with it: once is enough.
        memory = _memory_bytes(host, cores)
        dram_core = limits.read_bandwidth(1, memory)
        dram = max(dram_core, limits.read_bandwidth(cores, memory))
        l3_core, l3 = _last_cache(host, cores) if host.l3_bytes else (dram_core, dram)
        fork = limits.fork_join_s(cores) if cores > 1 else 0.0
    vector_bytes = host.vector_bits / 8
    flops_a_vector = 2 * vector_bytes / 4
    return Rates(
        clock_hz=clock,
        vector_ops_per_cycle=ops / clock / flops_a_vector,
        narrow_ops_per_cycle=narrow / clock / (flops_a_vector / 2),
        stores_per_cycle=stored / clock / vector_bytes,
        l2_bytes_per_cycle=l2 / clock,
        l3_bytes_per_cycle=l3_core / clock,
        l3_bytes_per_s=l3,
        dram_core_bytes_per_s=dram_core,
        dram_bytes_per_s=dram,
        fork_join_s=fork,
    )


def _best(measure: Callable[[], float]) -> float:
    return max(measure() for _ in range(PASSES))


def _last_cache(host: Target, cores: int) -> tuple[float, float]:
    """Bandwidth of the last-level cache in bytes per second, for one core and for all cores.

    A quarter of the cache is read: more than the inner caches hold, with room for other programs.
    """
    size = max(host.l3_bytes // 4, 2 * host.l2_bytes)
    alone = _best(lambda: limits.read_bandwidth(1, size))
    return alone, max(
        alone, _best(lambda: limits.read_bandwidth(cores, max(size, 2 * cores * host.l2_bytes)))
    )


def _memory_bytes(host: Target, cores: int) -> int:
    """Size of a buffer mostly outside the caches, at most a quarter of the free memory.

    At most sixteen cores share one last-level cache; each such group has its own.
    """
    groups = -(-cores // 16)
    wanted = min(4 * groups * max(host.l3_bytes, cores * host.l2_bytes, 16 * MIB), MOST_BYTES)
    with suppress(ValueError, OSError, AttributeError):
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        wanted = min(wanted, free // 4)
    return wanted


def _machine() -> dict[str, object]:
    """Identity of the machine that the rates describe."""
    host = Target.host()
    return {
        "format": _FORMAT,
        "cpu": machine_name(),
        "target": host.key,
        "cores": available_cores(),
        "caches": [host.l1_bytes, host.l2_bytes, host.l3_bytes],
    }


def _keep(rates: Rates) -> None:
    """Write the file atomically; if the folder is not writable, each run measures again."""
    path = rates_file()
    text = json.dumps({"machine": _machine(), "rates": rates.to_dict()}, indent=2) + "\n"
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as made:
            made.write_text(text, encoding="utf-8")
