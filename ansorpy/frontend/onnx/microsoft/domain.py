"""The name of the domain in the table of operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ansorpy.frontend.onnx.context import NodeContext

__all__ = ["Importer", "in_domain"]

Importer = Callable[[NodeContext], str | tuple[str, ...]]


def in_domain(importers: Mapping[str, Importer]) -> dict[str, Importer]:
    """*importers* under the names of operators of ``com.microsoft``."""
    return {f"com.microsoft.{name}": importer for name, importer in importers.items()}
