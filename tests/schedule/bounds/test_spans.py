"""Spans of touched elements cover what isl says is touched, exactly where indices are sums."""

from __future__ import annotations

import islpy
import numpy as np

from ansorpy.ir.analysis.access import Access, accesses, domain_of
from ansorpy.ir.expr import Const, as_expr
from ansorpy.schedule.bounds.spans import Origin, Part, Span, limits, start_of, touched
from tests.properties.random_operators import random_definition


def test_spans_cover_what_is_touched() -> None:
    covered = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        for op in random_definition(rng).computes:
            for access in accesses(op):
                covered += [is_covered(access, d, rng) for d in range(len(access.indices))]
    assert sum(covered) > 0.8 * len(covered), "of the others nothing is known"


def is_covered(access: Access, d: int, rng: np.random.Generator) -> bool:
    """Compare the span of index *d* in a random box; False where the span is not known."""
    value = domain_of(access.reader).affine(access.indices[d])
    starts = {a: int(rng.integers(a.extent)) for a in access.axes}
    sizes = {a: int(rng.integers(1, a.extent - starts[a] + 1)) for a in access.axes}
    box = {a.name: Span(Origin(((Part(a.name), 1),), 0), sizes[a]) for a in access.axes}
    span = touched(access.indices[d], access.reader, box)
    if span.origin is None or value is None:
        return False
    points = domain_of(access.reader).box
    for n, a in enumerate(access.axes):
        points = points.lower_bound_val(islpy.dim_type.set, n, starts[a])
        points = points.upper_bound_val(islpy.dim_type.set, n, starts[a] + sizes[a] - 1)
    inside = value.intersect_domain(points)
    low, high = inside.min_val().to_python(), inside.max_val().to_python()
    begin = start_of(span, {a.name: as_expr(n) for a, n in starts.items()})
    assert isinstance(begin, Const) and isinstance(span.extent, int)
    start, extent = int(begin.value), span.extent
    assert start <= low and high < start + extent
    if access.terms[d] is not None:
        assert (start, extent) == (low, high - low + 1)
    return True


def test_limits_are_those_that_isl_finds_before_all_loops() -> None:
    falling = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        for op in random_definition(rng).computes:
            for access in accesses(op):
                for d in range(len(access.indices)):
                    falling += has_limits(access, d, rng)
    assert falling, "no index falls as an axis rises"


def has_limits(access: Access, d: int, rng: np.random.Generator) -> bool:
    """Compare the limits of index *d* in a random box; True for an index without a span."""
    value = domain_of(access.reader).affine(access.indices[d])
    sizes = {a: int(rng.integers(1, a.extent + 1)) for a in access.axes}
    box = {a.name: Span(Origin(((Part(a.name), 1),), 0), n) for a, n in sizes.items()}
    found = limits(access.indices[d], access.reader, box)
    if found is None or value is None:
        return False
    points = domain_of(access.reader).box
    for n, a in enumerate(access.axes):
        points = points.upper_bound_val(islpy.dim_type.set, n, sizes[a] - 1)
    inside = value.intersect_domain(points)
    low, high = inside.min_val().to_python(), inside.max_val().to_python()
    assert isinstance(found[0], int) and isinstance(found[1], int)
    assert found[0] <= low and high <= found[1]
    if access.terms[d] is not None:
        assert found == (low, high)
    return touched(access.indices[d], access.reader, box).origin is None
