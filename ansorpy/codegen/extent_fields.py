"""Extents and dimensions as fields of pydantic models."""

from __future__ import annotations

from typing import Annotated

from pydantic import PlainSerializer, PlainValidator

from ansorpy.ir.extents import AnyExtent, Symbolic
from ansorpy.ir.symbols import Dim
from ansorpy.ir.text.extents import dim_data, dim_of, extent_data, extent_of

__all__ = ["DimField", "ExtentField"]

ExtentField = Annotated[
    AnyExtent,
    PlainValidator(lambda given: given if isinstance(given, Symbolic) else extent_of(given)),
    PlainSerializer(extent_data),
]
"""A number, or an expression of dimensions."""

DimField = Annotated[
    Dim,
    PlainValidator(lambda given: given if isinstance(given, Dim) else dim_of(given)),
    PlainSerializer(dim_data),
]
