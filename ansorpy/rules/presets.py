"""The rules for each backend and their order, defined only here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ansorpy.registry import Registry
from ansorpy.rules.algorithms.base import Algorithm
from ansorpy.rules.algorithms.clipped import Clipped
from ansorpy.rules.algorithms.key_blocks import KeyBlocks
from ansorpy.rules.algorithms.late_division import LateDivision
from ansorpy.rules.algorithms.residues import Residues
from ansorpy.rules.algorithms.subpixel import Subpixel
from ansorpy.rules.algorithms.tf32 import Tf32
from ansorpy.rules.algorithms.winograd import Winograd
from ansorpy.rules.annotation.copy_boxes import CopyBoxes
from ansorpy.rules.annotation.limit_block_resources import LimitBlockResources
from ansorpy.rules.annotation.limit_code_size import LimitCodeSize
from ansorpy.rules.annotation.pack_constants import PackConstants
from ansorpy.rules.annotation.pad_tiles import PadTiles
from ansorpy.rules.annotation.parallel import AnnotateParallel
from ansorpy.rules.annotation.pipeline_copies import PipelineCopies
from ansorpy.rules.annotation.reduce_in_lanes import ReduceInLanes
from ansorpy.rules.annotation.register_tile import RegisterTile
from ansorpy.rules.annotation.thread_bind import ThreadBind
from ansorpy.rules.annotation.thread_tile import ThreadTile
from ansorpy.rules.annotation.tile_for_vectors import TileForVectors
from ansorpy.rules.annotation.tile_transposes import TileTransposes
from ansorpy.rules.annotation.tile_warps import TileWarps
from ansorpy.rules.annotation.unroll import AnnotateUnroll
from ansorpy.rules.annotation.vectorize import AnnotateVectorize
from ansorpy.rules.base import AnnotationRule, Mutation, PlacementRule, SketchRule
from ansorpy.rules.mutation.auto_unroll import MutateAutoUnroll
from ansorpy.rules.mutation.block_choice import MutateBlockChoice
from ansorpy.rules.mutation.compute_location import MutateComputeLocation
from ansorpy.rules.mutation.parallel import MutateParallel
from ansorpy.rules.mutation.tile_size import MutateTileSize
from ansorpy.rules.mutation.vectorize import MutateVectorize
from ansorpy.rules.placement.compute_location import ChangeComputeLocation
from ansorpy.rules.placement.reduction_parts import DrawReductionParts
from ansorpy.rules.placement.rfactor_factors import DrawRfactorFactors
from ansorpy.rules.sketch.add_cache_read import AddCacheRead
from ansorpy.rules.sketch.add_cache_write import AddCacheWrite
from ansorpy.rules.sketch.add_operand_copy import AddOperandCopy
from ansorpy.rules.sketch.add_rfactor import AddRfactor
from ansorpy.rules.sketch.always_inline import AlwaysInline
from ansorpy.rules.sketch.chain_at_block import ChainAtBlock
from ansorpy.rules.sketch.chain_in_rows import ChainInRows
from ansorpy.rules.sketch.chain_in_warps import ChainInWarps
from ansorpy.rules.sketch.compute_at_block import ComputeAtBlock
from ansorpy.rules.sketch.cross_thread_reduction import CrossThreadReduction
from ansorpy.rules.sketch.dot_words import DotWords
from ansorpy.rules.sketch.multi_level_tiling import MultiLevelTiling
from ansorpy.rules.sketch.multi_level_tiling_with_fusion import MultiLevelTilingWithFusion
from ansorpy.rules.sketch.parts_at_block import PartsAtBlock
from ansorpy.rules.sketch.parts_in_rows import PartsInRows
from ansorpy.rules.sketch.rows_at_block import RowsAtBlock
from ansorpy.rules.sketch.simplify_const import SimplifyComputeWithConstTensor
from ansorpy.rules.sketch.skip_stage import SkipStage
from ansorpy.rules.sketch.special_compute_location import SpecialComputeLocation
from ansorpy.rules.sketch.split_reduction import SplitReduction
from ansorpy.rules.sketch.sum_in_registers import SumInRegisters
from ansorpy.rules.sketch.template import Template
from ansorpy.rules.sketch.tensor_cores import TensorCores
from ansorpy.schedule.stage import KernelStyle
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["ANSOR_CPU", "ANSOR_CUDA", "CPU", "CUDA", "PRESETS", "Preset", "preset_for", "template"]


@dataclass(frozen=True)
class Preset:
    """The rules of one search space, each tuple in the order of application.

    ``algorithms`` derive further definitions to schedule from the given one.  ``mutations`` come
    with their weights.  ``move`` leads from a candidate to one of another placed sketch; in each
    round of a search, every elite candidate proposes one such move (None if there are no moves).
    """

    name: str
    sketch: tuple[SketchRule, ...]
    placement: tuple[PlacementRule[Any], ...]
    annotation: tuple[AnnotationRule, ...]
    mutations: tuple[tuple[Mutation, float], ...]
    move: MutateComputeLocation | None = None
    algorithms: tuple[Algorithm, ...] = ()


ALGORITHMS: tuple[Algorithm, ...] = (
    Subpixel(),
    Residues(),
    Clipped(),
    Winograd(),
    KeyBlocks(),
    LateDivision(),
    Tf32(),
)

CPU_SKETCH: tuple[SketchRule, ...] = (
    AlwaysInline(),
    SimplifyComputeWithConstTensor(),
    AddRfactor(),
    AddCacheWrite(),
    MultiLevelTilingWithFusion(tile_levels="SSRSRS", levels=(1, 2)),
    MultiLevelTiling(tile_levels="SSRSRS"),
    SkipStage(),
)

DEFAULT_CPU_SKETCH: tuple[SketchRule, ...] = (
    ComputeAtBlock(),
    PartsAtBlock(max_innermost=96),
    ChainAtBlock(max_innermost=96),
    AlwaysInline(evaluated_once=True),
    SimplifyComputeWithConstTensor(),
    DotWords(),
    AddRfactor(only_when_short=True),
    AddCacheWrite(whole_epilogue=True),
    MultiLevelTilingWithFusion(
        tile_levels="SSRSRS", levels=(1, 2), ragged=True, whole_epilogue=True, max_innermost=96
    ),
    MultiLevelTiling(tile_levels="SSRSRS", reductions_only=True),
    AddOperandCopy(),
    SkipStage(),
)

CUDA_SKETCH: tuple[SketchRule, ...] = (
    AddCacheRead(),
    SpecialComputeLocation(),
    AlwaysInline(strict=False),
    SimplifyComputeWithConstTensor(),
    CrossThreadReduction(),
    AddCacheWrite(exclusive=True),
    MultiLevelTilingWithFusion(
        tile_levels="SSSRRSRS", levels=(3,), exclusive=True, kernel_style=KernelStyle.THREAD_TILES
    ),
    MultiLevelTiling(tile_levels="SSSRRSRS"),
    SkipStage(),
)

DEFAULT_CUDA_SKETCH: tuple[SketchRule, ...] = (
    PartsInRows(),
    ChainInWarps(),
    ChainInRows(),
    RowsAtBlock(),
    AddCacheRead(by_source=True),
    SpecialComputeLocation(),
    AlwaysInline(strict=False, most_loads=3, most_formulas=36),
    SimplifyComputeWithConstTensor(),
    SplitReduction(),
    TensorCores(),
    CrossThreadReduction(threads=(32, 64, 128, 256, 512, 1024)),
    AddCacheWrite(whole_epilogue=True, exclusive=True),
    MultiLevelTilingWithFusion(
        tile_levels="SSSRRS",
        levels=(3,),
        max_innermost=32,
        whole_epilogue=True,
        cover=True,
        exclusive=True,
        kernel_style=KernelStyle.THREAD_TILES,
    ),
    MultiLevelTiling(tile_levels="SSSRRS", max_innermost=32, reductions_only=True, cover=True),
    SumInRegisters(),
    SkipStage(),
)

ANSOR_CPU = Preset(
    "ansor",
    CPU_SKETCH,
    (DrawRfactorFactors(), ChangeComputeLocation()),
    (AnnotateParallel(), AnnotateUnroll(), AnnotateVectorize()),
    ((MutateTileSize(), 0.90), (MutateAutoUnroll(), 0.04), (MutateParallel(), 0.01)),
    MutateComputeLocation(),
)
"""Ansor's own rules, one for one, with TVM's weights."""

ANSOR_CUDA = Preset(
    "ansor",
    CUDA_SKETCH,
    (),
    (
        ThreadBind(),
        AnnotateUnroll(max_steps=(0, 16, 64, 512, 1024)),
        LimitBlockResources(registers=False, opt_in=False),
    ),
    ((MutateTileSize(), 0.90), (MutateAutoUnroll(), 0.10)),
)
"""Ansor's own rules, one for one, with TVM's weights."""

CPU = Preset(
    "default",
    DEFAULT_CPU_SKETCH,
    (DrawRfactorFactors(most_parts=64), ChangeComputeLocation()),
    (
        TileTransposes(),
        TileForVectors(),
        ReduceInLanes(),
        RegisterTile(),
        AnnotateParallel(allow_serial=True, keep_innermost=True),
        AnnotateUnroll(),
        AnnotateVectorize(max_elements=64, always_innermost=True),
        PackConstants(),
        LimitCodeSize(),
    ),
    (
        (MutateTileSize(), 0.86),
        (MutateAutoUnroll(), 0.04),
        (MutateParallel(), 0.03),
        (MutateVectorize(), 0.02),
    ),
    MutateComputeLocation(),
    ALGORITHMS,
)
"""The default for tuning on CPUs.

Ansor's rules plus explicit register tiles and vectors for our generator, packed constants, chains
in blocks, and algorithms as alternatives.
"""

CUDA = Preset(
    "default",
    DEFAULT_CUDA_SKETCH,
    (DrawReductionParts(),),
    (
        TileWarps(),
        ThreadBind(vectors=(1, 2, 4), untiled_threads=(64, 128, 256, 512)),
        PipelineCopies(),
        CopyBoxes(),
        PadTiles(),
        ThreadTile(),
        AnnotateUnroll(max_steps=()),
        LimitBlockResources(),
    ),
    (
        (MutateTileSize(), 0.80),
        (MutateBlockChoice(), 0.20),
    ),
    algorithms=ALGORITHMS,
)
"""The default for tuning on GPUs.

Ansor's rules plus tiles that need not divide, whole epilogues, vector and asynchronous copies into
padded tiles, sums kept in registers or shared by blocks, and algorithms as alternatives.
"""


def cpu_presets() -> tuple[Preset, ...]:
    """The search spaces of backends for CPUs."""
    return CPU, ANSOR_CPU


def cuda_presets() -> tuple[Preset, ...]:
    """The search spaces of backends for GPUs."""
    return CUDA, ANSOR_CUDA


PRESETS: Registry[tuple[Preset, ...]] = Registry(
    "preset",
    {
        "llvm": "ansorpy.rules.presets:cpu_presets",
        "cuda": "ansorpy.rules.presets:cuda_presets",
        "c": "ansorpy.rules.presets:cpu_presets",
    },
)
"""The search spaces of each backend; every backend has one called ``default``."""


def preset_for(target: Target, name: str = "default") -> Preset:
    """The preset called *name* (``"default"`` or ``"ansor"``) for *target*'s backend."""
    return {preset.name: preset for preset in PRESETS.one(target.backend)}[name]


def template(schedule: Callable[[State], State]) -> Preset:
    """The space of a schedule written by hand: what it leaves open, and nothing else."""
    mutations = ((MutateTileSize(), 0.7), (MutateBlockChoice(), 0.3))
    return Preset("template", (Template(schedule),), (), (), mutations)
