"""The trainer that all networks share: Adam on batches of programs of mixed tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ansorpy.arrays import Floats

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["Batch", "Examples", "Fitting", "batch_of", "train"]

_FARTHEST = 8.0
"""The largest distance of an input from its mean, in standard deviations: what the first programs
had in common may be far from that in later tasks, and some networks take exponentials."""


@dataclass(frozen=True)
class Fitting:
    """How a network is trained.

    Source: TenSet's and TLP's training code.  Differs: the rate is 3e-3 instead of 7e-4 and a batch
    64 instead of 512 programs, because a search has hundreds of programs rather than millions, and
    waits; ``examples`` and ``patience`` are ours.
    """

    rate: float = 3e-3
    decay: float = 1e-6
    clip: float = 0.5
    """Largest norm of a step's gradient."""
    batch: int = 64
    epochs: int = 50
    examples: int = 4096
    """Most programs of a refit, counted in every epoch; each is seen at least once.  Tuning waits
    for a refit."""
    patience: int = 8
    """Training stops after this many epochs in which the loss did not fall by 1 %."""
    threads: int = 1
    seed: int = 0

    def rounds(self, programs: int) -> int:
        """Number of epochs with this many programs."""
        return max(min(self.epochs, self.examples // programs), 1)


@dataclass(frozen=True)
class Examples:
    """Programs to learn: the matrix and the label of each, and the head that scores it."""

    features: Sequence[Floats]
    labels: Floats
    heads: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Batch:
    """Matrices of programs, padded with zero rows: ``raw[programs, most, width]``.

    ``rows`` are the same with columns of mean 0 and standard deviation 1, logarithmic
    beyond :data:`_FARTHEST`; ``real[programs, most]`` is False for padding.
    """

    raw: Tensor
    rows: Tensor
    real: Tensor
    heads: Tensor


def batch_of(features: Sequence[Floats], heads: npt.NDArray[np.int64], net: nn.Module) -> Batch:
    """The batch of these programs, each of at least one row, standardised for *net*."""
    import torch

    lengths = np.array([len(part) for part in features])
    most = int(lengths.max())
    rows = np.zeros((len(features), most, features[0].shape[1]), dtype=np.float32)
    for row, part in zip(rows, features, strict=True):
        row[: len(part)] = part
    real = np.arange(most) < lengths[:, None]
    raw = torch.from_numpy(rows)
    standard = (raw - net.centre) / net.spread
    beyond = (standard.abs() - _FARTHEST).clamp(min=0)
    standard = standard.clamp(-_FARTHEST, _FARTHEST) + standard.sign() * beyond.log1p()
    return Batch(raw, standard, torch.from_numpy(real), torch.from_numpy(heads))


def train(
    net: nn.Module,
    loss: Callable[[Batch, Tensor], Tensor],
    examples: Examples,
    options: Fitting,
    rng: np.random.Generator,
) -> None:
    """Train *net* further on *examples*; *loss* is that of a batch and its labels.

    Batches whose gradient is not finite are skipped.
    """
    import torch

    optimiser = torch.optim.AdamW(net.parameters(), lr=options.rate, weight_decay=options.decay)
    labels = torch.from_numpy(examples.labels.astype(np.float32))
    net.train()
    losses: list[float] = []
    for _ in range(options.rounds(len(examples))):
        total = 0.0
        order = rng.permutation(len(examples))
        for at in np.array_split(order, -(-len(order) // options.batch)):
            batch = batch_of([examples.features[n] for n in at], examples.heads[at], net)
            optimiser.zero_grad()
            wrong = loss(batch, labels[torch.from_numpy(at)])
            wrong.backward()
            norm = torch.nn.utils.clip_grad_norm_(net.parameters(), options.clip)
            if norm.isfinite():
                optimiser.step()
            total += float(wrong.detach()) * len(at)
        losses.append(total / len(order))
        if _stalled(losses, options.patience):
            break
    net.eval()


def _stalled(losses: Sequence[float], patience: int) -> bool:
    """Whether none of the last *patience* losses is 1 % less than the least before them."""
    if len(losses) <= patience:
        return False
    return min(losses[-patience:]) > 0.99 * min(losses[:-patience])
