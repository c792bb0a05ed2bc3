"""Monte-Carlo tree search over the decisions of a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, log, sqrt
from sys import float_info

from ansorpy.search.population import Key, Pool, Scored, top
from ansorpy.search.prefix import Decided, Prefix, begin, explored
from ansorpy.search.strategy import Context, Results

__all__ = ["ProTuner"]

Path = tuple[Decided, ...]


@dataclass
class ProTuner:
    """Trees of decisions, explored by random completions; only whole programs are scored.

    Each exploration of a tree descends from the root, always to the option with the highest upper
    confidence bound, to a prefix whose options have not all been tried.  Random programs that begin
    with it are scored, and all prefixes on the path count the scores.  After each round the root
    moves to the option with the fastest program below it, by measurement where there is one; a tree
    that has decided everything begins anew.

    Paper: ProTuner, arXiv 2005.13685.  Differs: 4 trees instead of 16, one of which values a
    beginning by the best of its completions where the paper completes greedily; an option is given
    up if no program took it in several explorations, as it may have no valid one; a round's
    measurements decide the move for all trees.  The constants are ours, as there is no code.

    Args:
        trees: How many; the last one is the greedy one.
        explorations: Paths that each tree follows per round.
        rollouts: Random programs at the end of each path.
        patience: Explorations of a prefix after which options that no program took are given up.
        exploration: Weight of the uncertainty in the bound.
    """

    trees: int = 4
    explorations: int = 12
    rollouts: int = 64
    patience: int = 3
    exploration: float = 1.0
    _forest: dict[int, _Tree] = field(default_factory=dict, repr=False)
    """The trees by number, without those that begin anew in the next round."""

    @property
    def roots(self) -> list[Prefix]:
        """What each tree has decided for good; trees that begin anew are left out."""
        return [tree.root.prefix for tree in self._forest.values()]

    def ask(self, context: Context, n: int) -> Pool:
        found = self._explored(context)
        best = top(found, 2 * n, context.measured)
        if not best:  # all that was decided leaves nothing new
            self._forest = {}
            found = self._explored(context)
            best = top(found, 2 * n, context.measured)
        return Pool(tuple(best), context.some(found, 2 * n))

    def _explored(self, context: Context) -> list[Scored]:
        """Follow the paths of one round; the programs found."""
        if len(self._forest) < self.trees:
            start = begin(context.source)  # a new one, as a prefix keeps the options below it
            for number in range(self.trees):
                greedy = number == self.trees - 1
                self._forest.setdefault(number, _Tree(_Node(start), greedy, self.patience))
        found: list[Scored] = []
        for _ in range(self.explorations):
            paths = [tree.select(self.exploration) for tree in self._forest.values()]
            leaves = {path[-1].prefix.decided: path[-1].prefix for path in paths}
            groups = explored(context, list(leaves.values()), self.rollouts)
            found += [group.scored for group in groups]
            for tree, path in zip(self._forest.values(), paths, strict=True):
                path[-1].explored += 1
                decided = path[-1].prefix.decided
                for group in groups:
                    if group.prefix.decided == decided:
                        tree.count(path, group.option, group.scored)
        return found

    def tell(self, found: Results) -> None:
        speeds = {c.key: 1 / result.median_s for c, result in found if result.ok}
        self._forest = {n: tree for n, tree in self._forest.items() if tree.move(speeds)}


@dataclass(eq=False)
class _Node:
    """A prefix in a tree, with the scores of the whole programs found below it."""

    prefix: Prefix
    visits: int = 0
    total: float = 0.0
    best: float = -inf
    worst: float = inf
    explored: int = 0
    """Explorations that ended here."""
    children: dict[Path, _Node] = field(default_factory=dict)

    def is_tried(self, patience: int) -> bool:
        """Whether each option has been tried, or was missed by *patience* explorations."""
        missed = len(self.prefix.options) - len(self.children)
        return bool(self.children) and (not missed or self.explored >= patience)

    def count(self, scored: Scored) -> None:
        self.visits += len(scored)
        self.total += float(scored.scores.sum())
        self.best = max(self.best, float(scored.scores.max()))
        self.worst = min(self.worst, float(scored.scores.min()))


@dataclass
class _Tree:
    """A search tree whose root moves down one decision at a time."""

    root: _Node
    is_greedy: bool
    patience: int
    ways: dict[Key, _Node] = field(default_factory=dict)
    """The child of the root that leads to each program found in this round."""

    def select(self, exploration: float) -> list[_Node]:
        """The nodes from the root to the one to explore next."""
        path = [self.root]
        while path[-1].is_tried(self.patience):
            node = path[-1]
            path.append(
                max(node.children.values(), key=lambda c: self._bound(c, node.visits, exploration))
            )
        return path

    def _bound(self, node: _Node, visits: int, exploration: float) -> float:
        """The upper confidence bound of a node's value, between the root's worst and best."""
        value = node.best if self.is_greedy else node.total / node.visits
        spread = max(self.root.best - self.root.worst, float_info.min)
        return (value - self.root.worst) / spread + exploration * sqrt(
            2 * log(visits) / node.visits
        )

    def count(self, path: Sequence[_Node], option: Prefix, scored: Scored) -> None:
        """Add the scores of programs that take *option* at the end of *path*."""
        last = path[-1]
        if option is not last.prefix:
            path = [*path, last.children.setdefault(option.decided, _Node(option))]
        for node in path:
            node.count(scored)
        if len(path) > 1:
            self.ways |= {(scored.sketch.key, row.tobytes()): path[1] for row in scored.table}

    def move(self, speeds: dict[Key, float]) -> bool:
        """Take the option with the fastest program below it; False if all is decided."""
        fastest: dict[_Node, float] = {}
        for key in self.ways.keys() & speeds.keys():
            way = self.ways[key]
            fastest[way] = max(fastest.get(way, 0.0), speeds[key])
        self.ways.clear()
        children = self.root.children.values()
        if children:
            self.root = max(children, key=lambda node: (fastest.get(node, 0.0), node.best))
        return bool(children)
