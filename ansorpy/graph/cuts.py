"""The ways in which a network can be cut into kernels, where only measuring can decide.

Passes ask questions (:mod:`ansorpy.graph.choices`).  Here every answer is tried, to find what it
changes: the calls of each way beyond those common to all.  Questions whose answers change the same
calls form one region, with a way for each combination of answers; so do all questions if the answer
to one changes what the others offer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

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
    """One way to cut a region: its answers, and its number of calls of each workload, by key.

    Answers are in the order of their questions, and only to what is asked after those before.
    """

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
        return ", ".join(dict.fromkeys(q for way in self.ways for q in way.answers))


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
        return partition(arrange(self.graph, Choices(answers, self.cache_bytes)))

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


def cuts_of(graph: Graph, cache_bytes: int = 0, *, byte_dots: bool = True) -> Cuts:
    """*graph*, as it was imported, cut in all ways that its passes leave open.

    Args:
        cache_bytes: Size of the caches next to the cores that will run it; 0 if not known.
        byte_dots: As of :func:`~ansorpy.graph.optimize.simplify`.
    """
    tries = _Tries(simplify(graph, byte_dots=byte_dots), cache_bytes)
    default = tries.under({})
    changed = {question: tries.changed_by(question) for question in default.asked}
    regions = tuple(tries.region(questions) for questions in _together(changed))
    others = {key: w for key, w in tries.workloads.items() if key not in default.calls}
    return Cuts(tries.graph, default.network, regions, others, cache_bytes)


@dataclass(frozen=True)
class _Try:
    """A network under some answers, what its passes asked, and its calls of each workload."""

    network: Network
    asked: Mapping[str, Mapping[str, object]]
    calls: Counter[str]


class _Tries:
    """The networks that answers lead to, each made once, and all their ``workloads`` by key."""

    def __init__(self, graph: Graph, cache_bytes: int):
        self.graph = graph
        self.cache_bytes = cache_bytes
        self.workloads: dict[str, Workload] = {}
        self._first: dict[str, str] = {}
        self._tried: dict[frozenset[tuple[str, str]], _Try] = {}

    def under(self, answers: Mapping[str, str]) -> _Try:
        """What *answers* lead to; other questions are answered with their first way."""
        given = {q: way for q, way in answers.items() if way != self._first.get(q)}
        key = frozenset(given.items())
        if key not in self._tried:
            self._tried[key] = self._try(given)
        return self._tried[key]

    def _try(self, answers: Mapping[str, str]) -> _Try:
        choices = Choices(answers, self.cache_bytes)
        network = partition(arrange(self.graph, choices))
        workloads = network.workloads()
        for workload in workloads:
            self.workloads.setdefault(workload.key, workload)
        for question, ways in choices.asked.items():
            self._first[question] = next(iter(ways))
        return _Try(network, choices.asked, Counter({w.key: w.weight for w in workloads}))

    def changed_by(self, question: str) -> set[str]:
        """The calls that answers to *question* replace; and all questions, if one changes these."""
        default, changed = self.under({}), set[str]()
        for way in default.asked[question]:
            other = self.under({question: way})
            changed |= (default.calls - other.calls).keys()
            if other.asked != default.asked:
                changed |= default.asked.keys() | other.asked.keys()
        return changed

    def region(self, questions: Collection[str]) -> Region:
        """The region of *questions*, with as many of them as make no more than MOST_WAYS ways."""
        found: list[dict[str, str]] = []
        wider: list[dict[str, str]] = [{}]
        while wider != found and len(wider) <= MOST_WAYS:
            found = wider
            wider = [further for answers in found for further in self._wider(answers, questions)]
        counts = [self.under(answers).calls for answers in found]
        common = reduce(Counter.__and__, counts)
        ways = (Way(a, dict(c - common)) for a, c in zip(found, counts, strict=True))
        return Region(tuple(ways))

    def _wider(
        self, answers: dict[str, str], questions: Collection[str]
    ) -> Iterable[dict[str, str]]:
        """*answers* with each way of the next of *questions* that is asked; as given if none is."""
        for question, ways in self.under(answers).asked.items():
            if question in questions and question not in answers:
                return [{**answers, question: way} for way in ways]
        return [answers]


def _together(changed: Mapping[str, set[str]]) -> list[set[str]]:
    """Groups of questions that change the same, with what they change.

    Those that change nothing are left out.
    """
    groups: list[set[str]] = []
    for question, names in changed.items():
        if names:
            group = {question, *names}
            group = group.union(*(g for g in groups if g & group))
            groups = [*(g for g in groups if not g & group), group]
    return groups
