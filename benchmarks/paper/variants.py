"""The variants of the search that the paper takes parts away from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ansorpy.rules.placement.compute_location import ChangeComputeLocation
from ansorpy.rules.presets import ANSOR_CPU, Preset
from ansorpy.rules.sketch.multi_level_tiling import MultiLevelTiling
from ansorpy.rules.sketch.multi_level_tiling_with_fusion import MultiLevelTilingWithFusion
from benchmarks.race.contestant import ANSOR, Contestant
from benchmarks.study.outcomes import Value
from benchmarks.study.tuned import Limit, Subject, tuned

__all__ = ["OPERATOR", "OURS", "SCHEDULER", "Variant", "named", "tuned_as"]


@dataclass(frozen=True)
class Variant:
    """A search by its parts and its rules; ``preset`` None: the default ones."""

    name: str
    parts: Mapping[str, str]
    preset: Preset | None = ANSOR_CPU


def limited(preset: Preset) -> Preset:
    """*preset* with the structure SRS instead of SSRSRS, and every stage where rules put it.

    Paper: OSDI'20 §7.1: "limited space" has the tiling levels and locations of manual templates.
    """
    sketch = []
    for rule in preset.sketch:
        if isinstance(rule, MultiLevelTilingWithFusion):
            rule = replace(rule, tile_levels="SRS", levels=(1,))
        elif isinstance(rule, MultiLevelTiling):
            rule = replace(rule, tile_levels="SRS")
        sketch.append(rule)
    placement = tuple(r for r in preset.placement if not isinstance(r, ChangeComputeLocation))
    return replace(preset, name="limited", sketch=tuple(sketch), placement=placement, move=None)


_ANSOR = ANSOR.parts

OURS = Variant("ansorpy", Contestant.default().parts, None)
WHOLE = Variant("Ansor", _ANSOR)
BEAM = Variant("beam search", _ANSOR | {"strategy": "beam"})
SAMPLED = Variant("no fine-tuning", _ANSOR | {"strategy": "random"})
LIMITED = Variant("limited space", _ANSOR, limited(ANSOR_CPU))
EQUAL = Variant("no task scheduler", _ANSOR | {"scheduler": "round_robin"})

OPERATOR = (WHOLE, BEAM, SAMPLED, LIMITED, OURS)
SCHEDULER = (WHOLE, EQUAL, SAMPLED, LIMITED, OURS)


def named(name: str) -> Variant:
    """The variant with that name."""
    return next(v for v in (*OPERATOR, *SCHEDULER) if v.name == name)


def tuned_as(subject: Subject, variant: str, limit: Limit, seed: int, key: str) -> Value:
    """Tune *subject* by the variant of that name."""
    chosen = named(variant)
    return tuned(subject, chosen.parts, limit, seed, key, chosen.preset)
