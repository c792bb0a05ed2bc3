"""Element types: their widths are numpy's."""

from __future__ import annotations

import pytest

from ansorpy.ir.dtypes import DType


@pytest.mark.parametrize("dtype", DType)
def test_widths_are_those_of_numpy(dtype: DType) -> None:
    assert dtype.bits == 8 * dtype.numpy.itemsize and dtype.bytes == dtype.numpy.itemsize
