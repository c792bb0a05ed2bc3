"""Spaces of GPU programs before one annotation rule, for the tests of the rule."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.tensor import Tensor
from ansorpy.rules.base import AnnotationRule
from ansorpy.rules.derive import generate_sketches
from ansorpy.rules.presets import CUDA
from ansorpy.schedule.space import Space
from ansorpy.target import Target
from tests.rules.asking import CUDA as GPU

__all__ = ["after", "annotated"]


def annotated(tensors: Sequence[Tensor], until: type[AnnotationRule] | None = None) -> Space:
    """The first sketch of preset default under its annotation rules before *until*."""
    space = Space(generate_sketches(ComputeDAG.of(tensors), GPU, CUDA)[0])
    for rule in CUDA.annotation:
        if until is not None and isinstance(rule, until):
            break
        space = rule.declare(space, GPU)
    return space


def after(rule: AnnotationRule, tensors: Sequence[Tensor], target: Target = GPU) -> Space:
    """The first sketch of preset default with *rule* in the place of its kind."""
    return rule.declare(annotated(tensors, type(rule)), target)
