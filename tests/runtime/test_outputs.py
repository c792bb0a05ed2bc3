"""Outputs that no call computes, and tensors without elements, in memory and in libraries."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ansorpy.graph import Network
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.runtime.model import load
from ansorpy.target import Target
from tests.graph.executor import Array, compiled, random_feeds, run_network
from tests.graph.nets import Net
from tests.runtime import programs

CALLER = """
#include "net.h"
#include <stdlib.h>

int main(void) {
    static float x[6], y[6], copy[6], given[6], whole[6];
    static int64_t sizes[2];
    net_tensor inputs[] = {{x, {2, 3}}, {NULL, {0, 3}}};
    net_tensor outputs[] = {{y, {6, 1}}, {copy, {2, 4}}, {given, {1, 6}},
                            {sizes, {2}}, {NULL, {0}}, {whole, {6, 6}}};
    size_t context_bytes;
    for (int i = 0; i < 6; ++i)
        x[i] = i - 3;
    if (net_init()) return 1;
    net_tensor planned[6];
    if (net_plan(inputs, planned, 1, &context_bytes)) return 6;
    void *context = malloc(context_bytes);
    if (net_run(context, inputs, outputs, 1)) return 2;
    for (int i = 0; i < 6; ++i)
        if (y[i] != (x[i] > 0 ? x[i] : 0) || copy[i] != y[i] || given[i] != x[i] || whole[i] != i)
            return 3;
    if (sizes[0] != 2 || sizes[1] != 3) return 4;
    if (outputs[4].shape[0] != 0 || outputs[4].shape[1] != 3) return 5;
    if (planned[4].shape[0] != 0 || planned[5].shape[1] != 3) return 7;
    inputs[1].shape[0] = 1;
    return net_run(context, inputs, outputs, 1) == 0;
}
"""


def network() -> Network:
    net = Net(x=(2, 3), past=(0, 3))
    y = net.relu("x")
    table = net.constant(np.arange(6).reshape(2, 3))
    model = net.model(
        y, net.op("Identity", y), net.op("Identity", "x"), net.op("Shape", y),
        net.op("Neg", "past"), net.op("Concat", "past", table, axis=0),
    )  # fmt: skip
    model.graph.output[3].type.tensor_type.elem_type = 7
    return compiled(model)


def model() -> tuple[CompiledModel, dict[str, Array], list[Array]]:
    found = network()
    tasks = {w.key: programs.task_of(w.dag, f"task{n}") for n, w in enumerate(found.workloads())}
    feeds = random_feeds(found, np.random.default_rng(2))
    made = CompiledModel.of(found, tasks, target=Target.host(), threads=1)
    return made, feeds, run_network(found, feeds)


def test_they_are_the_same_in_memory_and_in_a_library(tmp_path: Path) -> None:
    made, feeds, expected = model()
    assert [port.shape for port in made.get_inputs()] == [(2, 3), (0, 3)]
    for each in (made, load(made.export(tmp_path / "net.so"))):
        for got, want in zip(each.run(None, feeds), expected, strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            np.testing.assert_array_equal(got, want)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_nothing_has_to_lie_where_there_are_no_elements(tmp_path: Path) -> None:
    made, _, _ = model()
    made.export(tmp_path / "net.so")
    (tmp_path / "caller.c").write_text(CALLER)
    for source in ("caller.c", "net_example.c"):
        subprocess.run(
            ["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", source, "-o", "caller", "./net.so",
             "-Wl,-rpath,$ORIGIN"], check=True, cwd=tmp_path,
        )  # fmt: skip
        subprocess.run([tmp_path / "caller"], check=True, stdout=subprocess.DEVNULL)
