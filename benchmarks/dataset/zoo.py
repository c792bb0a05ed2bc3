"""The networks whose operators are recorded, and what is kept from them for evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import numpy as np
import onnx

from ansorpy.api.project import open_project
from ansorpy.api.request import Request
from ansorpy.ir.task import Task
from ansorpy.ir.text.serialize import structural_hash
from benchmarks.exported.catalogue import by_name
from benchmarks.exported.stored import restored, stored_names
from benchmarks.light import NAMES
from benchmarks.nets import ANY_SIZE, WRITTEN
from benchmarks.networks.suite import Entry
from benchmarks.ops.suite import cases
from benchmarks.search.catalogue import PLANS

__all__ = ["EVALUATED", "held_out", "zoo"]

EVALUATED = ("resnet50", "mobilenet_v2", "resnet3d_18", "dcgan", "bert_base", "bert")
"""Networks that no data is recorded of, since models are evaluated on them: those of Ansor's own
evaluation."""

_BATCHES: Mapping[str, Sequence[int]] = {"vgg19": (1,), "bvlc_alexnet": (1,)}
_USUAL_BATCHES = (1, 4)


@cache
def held_out() -> frozenset[str]:
    """Structural hashes of the definitions that no data may be recorded of.

    They are those of the evaluated networks, of the recorded spaces and of the operator suite.
    """
    request = Request.of(effort="none")
    dags = [case.dag for case in (*cases(), *(plan.case for plan in PLANS))]
    for name in EVALUATED:
        if name in ANY_SIZE:
            continue
        dags += [task.dag for task in open_project(Entry(name).model(0), request).all_tasks]
    return frozenset(map(structural_hash, dags))


def zoo(request: Request) -> Iterator[tuple[str, Task]]:
    """The tasks of the networks to record, with the names of the networks."""
    for name, model, shapes in _networks():
        for task in open_project(model, request, shapes=shapes).all_tasks:
            yield name, task


def _networks() -> Iterator[tuple[str, onnx.ModelProto, Mapping[str, Sequence[int]] | None]]:
    for name in (*NAMES, *WRITTEN):
        if name not in EVALUATED:
            for batch in _BATCHES.get(name, _USUAL_BATCHES):
                entry = Entry(name, batch)
                yield entry.label, entry.model(0), None
    for name in stored_names():
        network = by_name(name)
        for sizes in network.sizes:
            feeds = network.feeds(np.random.default_rng(0), sizes)
            yield name, restored(name), {key: feed.shape for key, feed in feeds.items()}
