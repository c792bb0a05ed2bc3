"""The ways in which a network can be cut into kernels, where only measuring can decide.

Passes ask questions (:mod:`ansorpy.graph.choices`).  This module tries every answer to find the
calls that it changes, which are the calls of each way beyond those common to all ways.  Questions
whose answers change the same calls form one region, with an alternative for each combination of
answers.  If an answer to one question changes the ways that others offer, all questions form one
region.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from ansorpy.graph.alternatives import Alternative, Alternatives
from ansorpy.graph.choices import Choices
from ansorpy.graph.ir import Graph
from ansorpy.graph.network import Network, Workload
from ansorpy.graph.optimize import arrange, simplify
from ansorpy.graph.partition import partition

__all__ = ["MOST_ALTERNATIVES", "Cuts", "Cutting", "cuts_of"]

MOST_ALTERNATIVES = 8
"""The most alternatives for one region; further questions get their first answer."""


@dataclass(frozen=True)
class Cutting:
    """How an imported graph becomes a network, as far as its own nodes do not decide it.

    Args:
        cache_bytes, byte_dots: As of :func:`cuts_of`.
        answers: To the questions of passes; others get their first one.
    """

    cache_bytes: int = 0
    byte_dots: bool = True
    answers: Mapping[str, str] = field(default_factory=dict)

    def simplified(self, graph: Graph) -> Graph:
        return simplify(graph, byte_dots=self.byte_dots)

    @property
    def choices(self) -> Choices:
        return Choices(self.answers, self.cache_bytes)

    def network(self, graph: Graph) -> Network:
        """The network of an imported *graph*.

        Raises:
            UnknownWay: An answer is none for this graph.
        """
        return partition(arrange(self.simplified(graph), self.choices))


@dataclass(frozen=True)
class Cuts:
    """A network as it is cut by default, and the regions that can be cut in other ways.

    Tasks are named by the keys of their workloads.  ``others`` has the workloads that are called by
    alternatives but not by ``network``.  ``cutting`` has the answers that are decided.
    """

    graph: Graph
    network: Network
    regions: tuple[Alternatives[str], ...]
    others: Mapping[str, Workload]
    cutting: Cutting

    def taking(self, options: Sequence[int]) -> Network:
        """The network with alternative number ``options[n]`` taken in region number ``n``."""
        if not any(options):
            return self.network
        return partition(arrange(self.graph, self._answering(options).choices))

    def _answering(self, options: Sequence[int]) -> Cutting:
        answers = dict(self.cutting.answers)
        for region, at in zip(self.regions, options, strict=True):
            answers |= region.options[at].answers
        return replace(self.cutting, answers=answers)

    def decided(self, options: Sequence[int]) -> Cuts:
        """These cuts with *options* taken (see :meth:`taking`): no region is left to choose."""
        cutting = self._answering(options)
        return replace(self, network=self.taking(options), regions=(), others={}, cutting=cutting)

    @property
    def workloads(self) -> dict[str, Workload]:
        """The workloads of the network and of all alternatives, by key."""
        return {w.key: w for w in self.network.workloads()} | dict(self.others)

    def within(self, size: Callable[[Network], int], most: int) -> Cuts:
        """The cuts without the alternatives that make the network's *size* larger than *most*.

        Each alternative is tried with the other regions cut by default.  If no
        alternative of a region is within *most*, the smallest is kept.
        """
        kept = []
        for number, region in enumerate(self.regions):
            sizes = [size(self._taking_one(number, at)) for at in range(len(region.options))]
            bound = max(most, min(sizes))
            kept.append([at for at, its in enumerate(sizes) if its <= bound])
        network = self.taking([options[0] for options in kept])
        regions = tuple(
            Alternatives(tuple(region.options[at] for at in options))
            for region, options in zip(self.regions, kept, strict=True)
        )
        called = {key for region in regions for key in region.most_calls}
        own = {w.key for w in network.workloads()}
        others = {key: w for key, w in self.workloads.items() if key in called - own}
        return replace(self, network=network, regions=regions, others=others)

    def _taking_one(self, region: int, option: int) -> Network:
        return self.taking([option if n == region else 0 for n in range(len(self.regions))])


def cuts_of(graph: Graph, cache_bytes: int = 0, *, byte_dots: bool = True) -> Cuts:
    """*graph*, as it was imported, cut in all ways that its passes leave open.

    Args:
        cache_bytes: Size of the caches next to the cores that will run it; 0 if not known.
        byte_dots: See :func:`~ansorpy.graph.optimize.simplify`.
    """
    cutting = Cutting(cache_bytes, byte_dots)
    tries = _Tries(cutting.simplified(graph), cutting)
    default = tries.under({})
    changed = {question: tries.changed_by(question) for question in default.asked}
    regions = tuple(tries.region(questions) for questions in _together(changed))
    others = {key: w for key, w in tries.workloads.items() if key not in default.calls}
    return Cuts(tries.graph, default.network, regions, others, cutting)


@dataclass(frozen=True)
class _Try:
    """The network for some answers, the questions asked, and how often it calls each workload."""

    network: Network
    asked: Mapping[str, Mapping[str, object]]
    calls: Counter[str]


class _Tries:
    """The networks for all answers tried, each made once, and their ``workloads`` by key."""

    def __init__(self, graph: Graph, cutting: Cutting):
        self.graph = graph
        self.cutting = cutting
        self.workloads: dict[str, Workload] = {}
        self._first: dict[str, str] = {}
        self._tried: dict[frozenset[tuple[str, str]], _Try] = {}

    def under(self, answers: Mapping[str, str]) -> _Try:
        """The network for *answers*; other questions are answered with their first way."""
        given = {q: way for q, way in answers.items() if way != self._first.get(q)}
        key = frozenset(given.items())
        if key not in self._tried:
            self._tried[key] = self._try(given)
        return self._tried[key]

    def _try(self, answers: Mapping[str, str]) -> _Try:
        choices = replace(self.cutting, answers=answers).choices
        network = partition(arrange(self.graph, choices))
        workloads = network.workloads()
        for workload in workloads:
            self.workloads.setdefault(workload.key, workload)
        for question, ways in choices.asked.items():
            self._first[question] = next(iter(ways))
        return _Try(network, choices.asked, Counter({w.key: w.weight for w in workloads}))

    def changed_by(self, question: str) -> set[str]:
        """The calls that answers to *question* replace.

        All questions are included if an answer changes which are asked, or their ways.
        """
        default, changed = self.under({}), set[str]()
        for way in default.asked[question]:
            other = self.under({question: way})
            changed |= (default.calls - other.calls).keys()
            if other.asked != default.asked:
                changed |= default.asked.keys() | other.asked.keys()
        return changed

    def region(self, questions: Collection[str]) -> Alternatives[str]:
        """The region of the first *questions*: as many as give at most MOST_ALTERNATIVES."""
        found: list[dict[str, str]] = []
        wider: list[dict[str, str]] = [{}]
        while wider != found and len(wider) <= MOST_ALTERNATIVES:
            found = wider
            wider = [further for answers in found for further in self._wider(answers, questions)]
        counts = [self.under(answers).calls for answers in found]
        common = reduce(Counter.__and__, counts)
        pairs = zip(found, counts, strict=True)
        return Alternatives(tuple(Alternative(a, dict(c - common)) for a, c in pairs))

    def _wider(
        self, answers: dict[str, str], questions: Collection[str]
    ) -> Iterable[dict[str, str]]:
        """*answers* extended by each way of the next of *questions*.

        *answers* alone if no other of *questions* is asked.
        """
        for question, ways in self.under(answers).asked.items():
            if question in questions and question not in answers:
                return [{**answers, question: way} for way in ways]
        return [answers]


def _together(changed: Mapping[str, set[str]]) -> list[set[str]]:
    """Groups of questions that change common calls, together with all calls that they change.

    Questions that change nothing are left out.
    """
    groups: list[set[str]] = []
    for question, names in changed.items():
        if names:
            group = {question, *names}
            group = group.union(*(g for g in groups if g & group))
            groups = [*(g for g in groups if not g & group), group]
    return groups
