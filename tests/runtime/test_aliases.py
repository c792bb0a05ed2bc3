"""Outputs in the memory of the inputs that they continue: steps beside onnxruntime, refusals."""

from __future__ import annotations

import ctypes
import json
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import integers

import ansorpy as ap
from ansorpy.errors import ForeignFile, UsageError
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.runtime.library.elf import find_metadata
from ansorpy.runtime.library.metadata import read_metadata
from ansorpy.runtime.ports import CTensor
from ansorpy.runtime.status import Status
from tests.budget import examples
from tests.codegen.c.compiled import needs_cc
from tests.runtime.growing import (
    CAPACITY,
    Arrays,
    Growing,
    assert_grows,
    decoder,
    memory,
    part,
    random_case,
)

STRICT = ("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1")


@examples(60)
@given(seed=integers(0, 2**32 - 1))
def test_random_networks_grow_in_place(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    assert_grows(case, case.compiled(), rng, int(rng.integers(3, 4 * CAPACITY)))


@pytest.mark.parametrize("heads_first", [True, False])
@pytest.mark.parametrize("capacity", [CAPACITY, CAPACITY - 2])
def test_a_decoder_writes_its_new_rows_only(
    heads_first: bool, capacity: int, rng: np.random.Generator
) -> None:
    case = decoder(heads_first=heads_first)
    network = case.cut()
    written = {name for call in network.calls for name in call.outputs}
    assert written.isdisjoint(case.alias)  # they are written in parts
    assert_grows(case, case.compiled(), rng, capacity)


@pytest.mark.parametrize("heads_first", [True, False])
def test_libraries_grow_in_place(
    heads_first: bool, tmp_path: Path, rng: np.random.Generator
) -> None:
    case = decoder(heads_first=heads_first)
    assert_grows(case, ap.load(case.compiled().export(tmp_path / "net.so")), rng, 5)
    header = (tmp_path / "net.h").read_text()
    assert f"output 1 continues input 1 along axis {2 if heads_first else 1}" in header


@needs_cc
@pytest.mark.parametrize("heads_first", [True, False])
def test_c_files_grow_in_place(heads_first: bool, tmp_path: Path, rng: np.random.Generator) -> None:
    case = decoder(heads_first=heads_first)
    case.compiled("c", threads=1).export(tmp_path / "net.c")
    for sources in (["-shared", "-fPIC", "-o", "net.so"], ["net_example.c", "-o", "example"]):
        command = [*STRICT, "net.c", *sources, "-lm"]
        subprocess.run(command, cwd=tmp_path, check=True)
    assert_grows(case, ap.load(tmp_path / "net.so"), rng, 5)
    out = subprocess.check_output(["./example", "1", "4"], cwd=tmp_path, text=True)
    assert "output1[0] = 0\n" in out  # the first row of before


@pytest.mark.parametrize("heads_first", [True, False])
def test_a_step_of_fixed_sizes_fills_its_memory(
    heads_first: bool, rng: np.random.Generator
) -> None:
    case = decoder(heads_first=heads_first)
    fixed = replace(case, dims={"past": 3})
    model = fixed.compiled()
    *_, (feeds, want) = islice(case.steps(rng), 4)
    got = model.run(None, model.with_room(feeds))
    for result, right in zip(got, want.values(), strict=True):
        np.testing.assert_allclose(result, right, rtol=2e-5, atol=2e-5)
    full = [model.with_room(feeds, 3) for _ in range(16)]  # no room for one more, anywhere
    for fed in full:
        with pytest.raises(UsageError, match="is not a part of memory with room for the 4 el"):
            model.run(None, fed)


@pytest.fixture(scope="module")
def grown() -> tuple[Growing, CompiledModel]:
    case = decoder()
    return case, case.compiled()


Grown = tuple[Growing, CompiledModel]


def test_runs_are_repeated_profiled_and_ask_for_some_outputs(
    grown: Grown, rng: np.random.Generator
) -> None:
    case, model = grown
    *_, (feeds, want) = islice(case.steps(rng), 3)
    names, fed = [*want], model.with_room(feeds)
    assert model.footprint.ports == 4 * (15 + 15 + 2 * 15 * CAPACITY)  # caches count once
    outputs = model.run(names, fed)
    assert len(model.profile(fed, runs=2)) == len(case.cut().calls)
    fed["x"] = np.zeros_like(fed["x"])
    run = model.prepare(fed, outputs)
    for _ in range(2):
        run()
        np.testing.assert_array_equal(outputs[1][:, :, -1], 0)
    model.run(names[:1], feeds | {name: fed[name] for name in case.shapes})
    np.testing.assert_allclose(outputs[1], want[names[1]], rtol=2e-5, atol=2e-5)


def test_arrays_that_do_not_share_memory_are_refused(
    grown: Grown, rng: np.random.Generator
) -> None:
    case, model = grown
    *_, (feeds, want) = islice(case.steps(rng), 3)
    wholes, names = memory(case), [*want]
    keys, values = (part(wholes[name], 2, 2) for name in ("past_key", "past_value"))
    outputs = [np.empty((1, 1, 15), np.float32), *(part(w, 2, 3) for w in wholes.values())]
    fed = {**feeds, "past_key": keys, "past_value": values}
    model.run(names, fed, outputs)
    wrong: list[tuple[Arrays, list[np.ndarray] | None, str]] = [
        (feeds, None, "input 'past_key' is not a part of memory with room for the 3 elements"),
        ({**fed, "past_key": keys.transpose(0, 1, 3, 2)}, None, "takes 1x3x5x5 .* got 1x3x5x2"),
        ({**fed, "past_key": keys.astype(np.float64)}, None, "got 1x3x2x5 of float64"),
        ({**fed, "past_key": wholes["past_key"][:, :, :4:2]}, None, "not the first part, along"),
        (fed, [outputs[0], outputs[2], outputs[1]], "does not continue that for input 'past_key'"),
        (fed, [outputs[0], outputs[1].copy(), outputs[2]], "does not continue that"),
        ({**fed, "past_key": part(memory(case, 5)["past_key"], 2, 2)}, None,
         "has room for 7 elements along axis 2, but that of another one for 5"),
        ({**fed, "past_key": part(memory(case, 8)["past_key"], 2, 2)}, None,
         "has room for 8 elements along axis 2, but it was compiled for 7 at most"),
        ({**fed, "past_value": keys}, None, "shares memory with another input or output"),
        ({**fed, "past_key": keys.tolist()}, None, "got 1x3x2x5 of float64"),
    ]  # fmt: skip
    for given_, made, message in wrong:
        with pytest.raises(UsageError, match=message):
            model.run(names, given_, made)
    keys.flags.writeable = False
    with pytest.raises(UsageError, match="read-only"):
        model.run(names, fed)
    for capacity in (1, 8):
        with pytest.raises(UsageError, match=f"cannot have room for {capacity}") as caught:
            model.with_room(feeds, capacity)
    assert caught.value.hint == "give a capacity up to 7"
    with pytest.raises(UsageError, match="input 'past_key' has 4 axes, got 1"):
        model.with_room({"past_key": np.ones(3, np.float32)})


def test_wrong_calls_from_c_are_refused(
    grown: Grown, tmp_path: Path, rng: np.random.Generator
) -> None:
    case, model = grown
    library = ctypes.CDLL(str(model.export(tmp_path / "net.so")))
    assert library.net_init() == Status.OK
    *_, (feeds, want) = islice(case.steps(rng), 3)
    wholes = [*memory(case).values()]
    for whole, name in zip(wholes, case.shapes, strict=True):
        part(whole, 2, 2)[...] = feeds[name]
    y, size = np.empty((1, 1, 15), np.float32), ctypes.c_size_t()
    inputs = table([feeds["x"], *(part(whole, 2, 2) for whole in wholes)])
    outputs = table([y, *wholes])
    assert library.net_plan(inputs, outputs, 1, ctypes.byref(size)) == Status.OK
    assert [*outputs[1].shape[:4]] == [1, 3, 3, 5]
    context = ctypes.create_string_buffer(size.value)

    def run(*arrays: np.ndarray, **extents: int) -> int:
        outputs = table([y, *arrays])
        for axis, extent in extents.items():
            outputs[1].shape[int(axis[1:])] = extent
        return int(library.net_run(context, inputs, outputs, 1))

    assert run(*wholes) == Status.OK
    np.testing.assert_allclose(y, [*want.values()][0], rtol=2e-5, atol=2e-5)
    assert run(*wholes[::-1]) == Status.NOT_SHARED
    assert run(*wholes, d2=2) == Status.TOO_SMALL
    assert run(*wholes, d2=8) == run(*wholes, d2=6) == run(*wholes, d1=4) == Status.WRONG_SHAPE


def table(arrays: Sequence[np.ndarray]) -> ctypes.Array[CTensor]:
    made = (CTensor * len(arrays))()
    for tensor, array in zip(made, arrays, strict=True):
        tensor.data = array.ctypes.data
        tensor.shape[: array.ndim] = array.shape
    return made


def test_metadata_of_strangers_are_checked(grown: Grown, tmp_path: Path) -> None:
    _, model = grown
    text = find_metadata(model.export(tmp_path / "net.so"))
    assert read_metadata(text, "net").port_aliases[0].capacity is not None
    for wrong in ({"input": 0}, {"output": 2}, {"output": 9}, {"axis": 1}, {"axis": 4}):
        fields = json.loads(text)
        fields["aliases"][0] |= wrong
        with pytest.raises(ForeignFile, match="memory"):
            read_metadata(json.dumps(fields).encode(), "net")
