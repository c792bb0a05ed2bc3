"""Losses of networks: of the scores of programs and their labels, throughputs in 0..1."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["LOSSES", "Loss", "lambda_rank", "relative", "squared"]

Loss: TypeAlias = Literal["lambda_rank", "squared", "relative"]


def lambda_rank(scores: Tensor, labels: Tensor) -> Tensor:
    """The logistic loss of each pair in the wrong order, weighted by what swapping it would gain.

    The gain is that of the normalised discounted cumulative gain at the places that the scores
    give.  Source: TenSet's and TLP's training code.
    """
    import torch

    scores, order = scores.sort(descending=True)
    labels = labels[order]
    place = torch.arange(1, len(scores) + 1, dtype=scores.dtype)
    discount = 1 / torch.log2(1 + place)
    gains = 2**labels - 1
    best = (gains.sort(descending=True).values * discount).sum().clamp(min=1e-9)
    gain = gains / best
    weight = (discount[:, None] - discount).abs() * (gain[:, None] - gain).abs()
    ahead = labels[:, None] > labels
    wrong = -torch.nn.functional.logsigmoid(scores[:, None] - scores) / torch.log(torch.tensor(2.0))
    return (weight * wrong * ahead).sum()


def squared(scores: Tensor, labels: Tensor) -> Tensor:
    """The mean squared error."""
    return ((scores - labels) ** 2).mean()


def relative(scores: Tensor, labels: Tensor) -> Tensor:
    """The mean error of ``exp(scores)`` relative to the labels; those of failures, 0, are left out.

    Source: the MAPE of Tiramisu's cost model.
    """
    ran = labels > 0
    if not ran.any():
        return scores.sum() * 0
    return ((scores[ran].exp() - labels[ran]).abs() / labels[ran]).mean()


LOSSES: dict[Loss, Callable[[Tensor, Tensor], Tensor]] = {
    "lambda_rank": lambda_rank,
    "squared": squared,
    "relative": relative,
}
