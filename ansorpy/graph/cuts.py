"""The ways in which a network can be cut into kernels, where only measuring can decide.

Passes ask questions (:mod:`ansorpy.graph.choices`).  Here every answer is tried, to find what it
changes: the calls of each way beyond those common to all.  Questions whose answers change the same
calls form one region, with a way for each combination of answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from math import prod

from ansorpy.graph.choices import Choices
from ansorpy.graph.ir import Graph
from ansorpy.graph.network import Network, Workload
from ansorpy.graph.optimize import arrange, simplify
from ansorpy.graph.partition import partition

__all__ = ["MOST_WAYS", "Cuts", "Region", "Way", "cuts_of"]

MOST_WAYS = 8
"""The most ways in one region; further questions get their first answer."""


@dataclass(frozen=True)
class Way:
    """One way to cut a region: its answers, and its number of calls of each workload, by key."""

    answers: Mapping[str, str]
    calls: Mapping[str, int]

    @property
    def name(self) -> str:
        """The answers in words."""
        return ", ".join(self.answers.values())


@dataclass(frozen=True)
class Region:
    """Questions that are decided together; the first way is the default."""

    ways: tuple[Way, ...]

    @property
    def name(self) -> str:
        """The questions in words."""
        return ", ".join(self.ways[0].answers)


@dataclass(frozen=True)
class Cuts:
    """A network as it is cut by default, and the regions that can be cut otherwise.

    ``others`` has the workloads, by key, that other ways call and ``network`` does not.
    """

    graph: Graph
    network: Network
    regions: tuple[Region, ...]
    others: Mapping[str, Workload]
    cache_bytes: int = 0

    def taking(self, ways: Sequence[int]) -> Network:
        """The network with way number ``ways[n]`` taken in region number ``n``."""
        answers: dict[str, str] = {}
        for region, at in zip(self.regions, ways, strict=True):
            answers |= region.ways[at].answers
        return _cut(self.graph, answers, self.cache_bytes)

    def within(self, size: Callable[[Network], int], most: int) -> Cuts:
        """The cuts without the ways that make the network's *size* larger than *most*.

        Each way is tried with the other regions cut by default.  A region without any way within
        *most* keeps its smallest.
        """
        kept = []
        for number, region in enumerate(self.regions):
            sizes = [size(self._taking_one(number, at)) for at in range(len(region.ways))]
            bound = max(most, min(sizes))
            kept.append([at for at, its in enumerate(sizes) if its <= bound])
        network = self.taking([ways[0] for ways in kept])
        regions = tuple(
            Region(tuple(region.ways[at] for at in ways))
            for region, ways in zip(self.regions, kept, strict=True)
        )
        known = {w.key: w for w in (*self.network.workloads(), *self.others.values())}
        called = {key for region in regions for way in region.ways for key in way.calls}
        own = {w.key for w in network.workloads()}
        others = {key: w for key, w in known.items() if key in called - own}
        return replace(self, network=network, regions=regions, others=others)

    def _taking_one(self, region: int, way: int) -> Network:
        return self.taking([way if n == region else 0 for n in range(len(self.regions))])


def cuts_of(graph: Graph, cache_bytes: int = 0) -> Cuts:
    """*graph*, as it was imported, cut in all ways that its passes leave open.

    Args:
        cache_bytes: Size of the caches next to the cores that will run it; 0 if not known.
    """
    graph = simplify(graph)
    choices = Choices(cache_bytes=cache_bytes)
    network = partition(arrange(graph, choices))
    calls = _calls(network)
    found = {w.key: w for w in network.workloads()}
    tried: dict[tuple[tuple[str, str], ...], Counter[str]] = {}

    def calls_of(answers: Mapping[str, str]) -> Counter[str]:
        key = tuple(answers.items())
        if key not in tried:
            other = _cut(graph, answers, cache_bytes)
            for workload in other.workloads():
                found.setdefault(workload.key, workload)
            tried[key] = _calls(other)
        return tried[key]

    changed = {
        question: set[str]().union(
            *(calls - calls_of({question: way}) for way in ways[1:])
        )
        for question, ways in choices.asked.items()
    }  # fmt: skip
    regions = []
    for questions in _together(changed):
        ways = {question: choices.asked[question] for question in _few(questions, choices)}
        answers = [dict(zip(ways, taken, strict=True)) for taken in product(*ways.values())]
        counts = [calls, *(calls_of(answer) for answer in answers[1:])]
        common = reduce(Counter.__and__, counts)
        regions.append(
            Region(tuple(Way(a, dict(c - common)) for a, c in zip(answers, counts, strict=True)))
        )
    others = {key: w for key, w in found.items() if key not in calls}
    return Cuts(graph, network, tuple(regions), others, cache_bytes)


def _cut(graph: Graph, answers: Mapping[str, str], cache_bytes: int) -> Network:
    return partition(arrange(graph, Choices(answers, cache_bytes)))


def _calls(network: Network) -> Counter[str]:
    return Counter({w.key: w.weight for w in network.workloads()})


def _together(changed: Mapping[str, set[str]]) -> Iterable[list[str]]:
    """Groups of questions that change the same calls; those that change none are left out."""
    groups: list[tuple[list[str], set[str]]] = []
    for question, keys in changed.items():
        if not keys:
            continue
        questions, all_keys = [question], set(keys)
        for group in [g for g in groups if g[1] & keys]:
            groups.remove(group)
            questions, all_keys = group[0] + questions, all_keys | group[1]
        groups.append((questions, all_keys))
    return [questions for questions, _ in groups]


def _few(questions: Sequence[str], choices: Choices) -> list[str]:
    """The first of *questions*, as many as make no more than MOST_WAYS ways."""
    counts = [len(choices.asked[question]) for question in questions]
    return [q for n, q in enumerate(questions) if prod(counts[: n + 1]) <= MOST_WAYS]
