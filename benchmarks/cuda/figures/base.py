"""Parts that all measured steps share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ansorpy as ap
from ansorpy.errors import MissingDependency, VerificationFailed

__all__ = ["Figures", "FigureSettings", "Step", "TOLERANCES", "compare", "cuda_torch", "tuned"]

TOLERANCES = {"float32": 2e-3, "float16": 5e-3, "bfloat16": 2e-2, "int8": 0.0}
"""By type, how far torch's result may be from ours, relative to the largest value: it shows only
that both compute the same.  Ours was compared with the CPU's before."""


@dataclass(frozen=True)
class FigureSettings:
    """What all steps share.

    Args:
        db: The file of trials.
        trials: The number of trials per case.
        compile_mode: The mode of ``torch.compile``.
        models: Networks compiled in this process, by name, for the steps that share one.
    """

    db: Path
    trials: int = 32
    seed: int = 0
    compile_mode: str = "reduce-overhead"
    models: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Figures:
    """Seconds of our call and of torch's, what both computed, and a note.

    Args:
        dtype: Type of the inputs.
        sums: Type in which sums are computed.
        peer: What of torch was called.
        rate: Candidates measured in a minute, where that is what is wanted.
    """

    ours_s: float
    peer_s: float
    note: str = ""
    dtype: str = "float32"
    sums: str = "float32"
    peer: str = ""
    rate: float | None = None


@dataclass(frozen=True)
class Step:
    """One thing to measure, and the ratio (torch's time over ours) that it should reach.

    ``limit_s`` is the maximum time of its search, of which about ``reference_s`` go by before the
    first program is measured; ``beside_s`` is the time of everything else.
    """

    name: str
    wanted: float
    limit_s: float
    measure: Callable[[Any, FigureSettings, float], Figures]
    beside_s: float = 4.0
    reference_s: float = 0.0


def cuda_torch() -> Any:
    """Import torch for a GPU, in float32 without TF32.

    Raises:
        MissingDependency: torch is not installed, or finds no GPU.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingDependency(
            f"the peer is torch, which is not installed ({error})", hint="pip install torch"
        ) from error
    if not torch.cuda.is_available():
        raise MissingDependency("torch sees no GPU", hint="install the torch that fits the driver")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.set_default_device("cuda")
    torch.set_grad_enabled(False)
    return torch


def tuned(tensors: Sequence[Any], settings: FigureSettings, limit_s: float, *, trials: int) -> Any:
    """The kernel of the best program found in *limit_s*."""
    return ap.tune(
        tensors, target="cuda", trials=trials, time_limit=limit_s, db=settings.db,
        seed=settings.seed,
    )  # fmt: skip


def compare(got: Any, want: Any, tolerance: float) -> None:
    """Raise unless the results agree within *tolerance* of the largest value."""
    scale = float(want.double().abs().max()) or 1.0
    error = float((got.double() - want.reshape(got.shape).double()).abs().max()) / scale
    if not error <= tolerance:
        raise VerificationFailed(f"differs from torch by {error:.2g} of the largest value")
