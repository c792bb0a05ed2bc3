"""Compiled code under the names of another definition: tensors and dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.extents import dim_extent
from ansorpy.ir.sizes import Sizes
from ansorpy.ir.symbols import Dim
from ansorpy.measure.build.built import Built, ParamSpec

__all__ = ["with_names_of"]


def with_names_of(
    built: Built, dag: ComputeDAG, origin: ComputeDAG, dims: Mapping[Dim, Dim]
) -> Built:
    """Return *built* with the names of *dag* instead of those of *origin*, matched by position.

    Tensors that ``bind`` makes have no counterpart in *dag*; a suffix makes their names unique.
    *dims* has the dimensions of *dag* for those of *origin*.
    """
    pairs = zip((*origin.args, *origin.outputs), (*dag.args, *dag.outputs), strict=True)
    names = {old.name: new.name for old, new in pairs}
    sizes: Sizes = {old: dim_extent(new) for old, new in dims.items() if old != new}

    def named(params: tuple[ParamSpec, ...]) -> tuple[ParamSpec, ...]:
        found = [spec.at(sizes) for spec in params] if sizes else params
        return tuple(
            spec.model_copy(update={"name": names.get(spec.name, f"{spec.name}<bound>")})
            for spec in found
        )

    return replace(built, run_params=named(built.run_params), bind_params=named(built.bind_params))
