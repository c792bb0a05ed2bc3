"""Random networks are valid, differ, and have operators that can be compiled."""

from __future__ import annotations

import onnx
import pytest

from ansorpy.api.project import open_project
from ansorpy.api.request import Request
from ansorpy.evaluation.random_networks import random_network
from tests.budget import some


@pytest.mark.parametrize("seed", some(range(20)))
def test_a_random_network_is_valid_and_has_tasks(seed: int) -> None:
    model = random_network(seed)
    assert model.SerializeToString() == random_network(seed).SerializeToString()
    inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    assert inferred.graph.output
    tasks = open_project(model, Request.of(effort="none")).all_tasks
    assert tasks and not any(task.dag.dims for task in tasks)
