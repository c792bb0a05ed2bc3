from __future__ import annotations

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.text.relations import relations_text
from tests import workloads
from tests.ir.workloads import gather, scalar


def test_a_padded_convolution() -> None:
    told = relations_text(ComputeDAG.of(workloads.conv2d_bn_relu(1, 6, 6, 4, 8)))
    assert told.splitlines()[:5] == [
        "pad over i < 1, j < 4, y < 8, x < 8",
        "  pad[i, j, y, x] reads data[0, j, -1 + y, -1 + x] : 0 < y <= 6 and 0 < x <= 6",
        "conv over nn < 1, ff < 8, yy < 6, xx < 6, rc < 4, ry < 3, rx < 3",
        "  conv[nn, ff, yy, xx, rc, ry, rx] reads pad[0, rc, yy + ry, xx + rx], again along ff",
        "  conv[nn, ff, yy, xx, rc, ry, rx] reads weight[ff, rc, ry, rx], again along yy, xx",
    ]


def test_a_gather_may_read_any_row() -> None:
    assert relations_text(gather(5, 4)).splitlines()[1:] == [
        "  y[i, j] may read table[o0, j] : 0 <= o0 <= 4",
        "  y[i, j] reads index[i], again along j",
    ]


def test_a_scalar() -> None:
    assert relations_text(scalar(8)) == "p over k < 8\n  p[k] reads x[k]"
