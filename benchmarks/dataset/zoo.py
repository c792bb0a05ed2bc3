"""The networks whose operators are recorded, and what is kept from them for evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import numpy as np

from ansorpy.api.project import open_project
from ansorpy.api.request import Request
from ansorpy.ir.task import Task
from ansorpy.ir.text.serialize import structural_hash
from ansorpy.search.population import in_turns
from benchmarks.ops.suite import cases
from benchmarks.spaces.catalogue import PLANS
from benchmarks.zoo import WRITTEN
from benchmarks.zoo.exported.catalogue import by_name
from benchmarks.zoo.exported.stored import restored, stored_names
from benchmarks.zoo.light import NAMES
from benchmarks.zoo.suite import Entry

__all__ = ["EVALUATED", "entries", "exported", "held_out", "zoo"]

EVALUATED = ("resnet50", "mobilenet_v2", "resnet3d_18", "dcgan", "bert_base")
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
        dags += [task.dag for task in open_project(Entry(name).model(0), request).all_tasks]
    return frozenset(map(structural_hash, dags))


def zoo(request: Request) -> Iterator[tuple[str, Task]]:
    """The tasks of the networks of the benchmarks, with the networks' names.

    They are in random order, one network after the other in turn.
    """
    return in_turns(*(_shuffled(entry, request) for entry in entries()))


def _shuffled(entry: Entry, request: Request) -> Iterator[tuple[str, Task]]:
    tasks = open_project(entry.model(0), request).all_tasks
    for number in np.random.default_rng(0).permutation(len(tasks)):
        yield entry.label, tasks[number]


def entries() -> list[Entry]:
    """The networks of the benchmarks that are recorded."""
    return [
        Entry(name, batch)
        for name in (*NAMES, *WRITTEN)
        if name not in EVALUATED
        for batch in _BATCHES.get(name, _USUAL_BATCHES)
    ]


def exported(request: Request) -> Iterator[tuple[str, Task]]:
    """The tasks of the stored graphs of common exporters at several sizes, in random order."""
    drawn = [(name, sizes) for name in stored_names() for sizes in by_name(name).sizes]
    for number in np.random.default_rng(0).permutation(len(drawn)):
        name, sizes = drawn[number]
        feeds = by_name(name).feeds(np.random.default_rng(0), sizes)
        shapes = {key: feed.shape for key, feed in feeds.items()}
        for task in open_project(restored(name), request, shapes=shapes).all_tasks:
            yield name, task
