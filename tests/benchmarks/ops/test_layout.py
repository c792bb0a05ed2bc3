from __future__ import annotations

import numpy as np

from benchmarks.ops.layout import Layout, channels_first


def test_channels_first() -> None:
    array = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    np.testing.assert_array_equal(channels_first(2).to_peer(array), array.transpose(0, 3, 1, 2))


def test_merged_axes_come_back(rng: np.random.Generator) -> None:
    layout = Layout(((3, 5), (2, 4), (), (0,), (1,)))
    array = rng.standard_normal((2, 3, 4, 5, 6, 7))
    peer = layout.to_peer(array)
    assert peer.shape == layout.shape(array.shape) == (35, 24, 1, 2, 3)
    assert peer[7 * 2 + 1, 6 * 3 + 4, 0, 1, 2] == array[1, 2, 3, 2, 4, 1]
    np.testing.assert_array_equal(layout.from_peer(peer, array.shape), array)
