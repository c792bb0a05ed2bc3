"""Names of stages and axes in one task: short, unique, and the same for equal tasks."""

from __future__ import annotations

__all__ = ["Names", "image_axes", "spatial_axes"]


class Names:
    """Generates unique stage names; the second ``relu`` is ``relu_2``."""

    def __init__(self) -> None:
        self._count: dict[str, int] = {}

    def fresh(self, base: str) -> str:
        count = self._count.get(base, 0) + 1
        self._count[base] = count
        return base if count == 1 else f"{base}_{count}"


def spatial_axes(rank: int) -> tuple[str, ...]:
    """Axis names of *rank* spatial dimensions, outermost first: ``d h w`` for the last three."""
    return tuple("dhw"[-rank:]) if rank <= 3 else tuple(f"s{i}" for i in range(rank))


def image_axes(ndim: int) -> tuple[str, ...]:
    """Axis names of a channels-last image of *ndim* dimensions; ``i`` and ``c`` for a matrix."""
    if ndim < 2:
        return ("c",)[:ndim]
    return ("i", "c") if ndim == 2 else ("n", *spatial_axes(ndim - 2), "c")
