"""Load values that several consecutive statements read only once, including guarded loads::

    T[0] = select(c, X[0], 0) - select(c, X[2], 0)      X.once[0] = select(c, X[0], 0)
    T[1] = select(c, X[0], 0) + select(c, X[2], 0)  --> X.once[1] = select(c, X[2], 0)
                                                        T[0] = X.once[0] - X.once[1]
                                                        T[1] = X.once[0] + X.once[1]

The compiler merges equal loads, but not equal selects of loads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ansorpy.ir.expr import Const, Expr, Load, Select, Var, as_expr, children, walk
from ansorpy.ir.loops import Alloc, Buffer, Scope, Seq, Stmt, Store
from ansorpy.ir.rewrite.rewriter import Rewriter
from ansorpy.ir.tensor import Tensor

__all__ = ["loaded_once"]

_MOST = 128
"""Maximum number of loaded values that a thread holds."""


def loaded_once(stores: Sequence[Stmt]) -> Stmt:
    """Join *stores*; guarded loads that several of them share are executed once, before them.

    Those that depend on what one of *stores* writes stay where they are.
    """
    plain = [s for s in stores if isinstance(s, Store)]
    if len(plain) < len(stores):
        return Seq(tuple(stores))
    keys, written = _Keys(), {s.buffer for s in plain}
    found: dict[Expr, int] = {}
    uses: Counter[int] = Counter()
    for s in plain:
        read = {e: keys.of(e) for e in _unconditional(s.value) if _is_guarded_load(e)}
        found |= {e: key for e, key in read.items() if written.isdisjoint(_sources(e))}
        uses.update(set(read.values()))
    first: dict[int, Expr] = {}
    for e, key in found.items():
        first.setdefault(key, e)
    shared = {key: e for key, e in first.items() if uses[key] > 1}
    kinds = {e.dtype for e in shared.values()}
    if len(shared) > _MOST or len(kinds) != 1:
        return Seq(tuple(stores))
    name = _source(next(iter(shared.values()))).name
    own = Buffer(f"{name}.once", (len(shared),), kinds.pop(), Scope.LOCAL)
    place = {key: n for n, key in enumerate(shared)}
    loads = [Store(own, (as_expr(place[key]),), e, None) for key, e in shared.items()]
    at = {e: place[key] for e, key in found.items() if key in place}
    return Alloc(own, Seq((*loads, *(_Replaced(own, at).stmt(s) for s in plain))))


class _Replaced(Rewriter):
    """Replaces the selects in *at* with loads from the buffer that holds their values."""

    def __init__(self, own: Buffer, at: dict[Expr, int]):
        super().__init__()
        self.own = own
        self.at = at

    def expr(self, e: Expr) -> Expr:
        number = self.at.get(e)
        return super().expr(e) if number is None else Load(self.own, (as_expr(number),))


def _is_guarded_load(e: Expr) -> bool:
    """Return whether *e* is a select between a (guarded) load and a constant."""
    if not isinstance(e, Select) or not isinstance(e.other, Const):
        return False
    return isinstance(e.then, Load) or _is_guarded_load(e.then)


def _source(e: Expr) -> Buffer:
    """The buffer that a guarded load reads."""
    while isinstance(e, Select):
        e = e.then
    assert isinstance(e, Load) and isinstance(e.source, Buffer)
    return e.source


def _sources(e: Expr) -> set[Tensor | Buffer]:
    """What *e* reads, in its conditions and indices too."""
    return {x.source for x in walk(e) if isinstance(x, Load)}


def _unconditional(root: Expr) -> Iterator[Expr]:
    """Yield the nodes of *root* that are evaluated unconditionally, each once."""
    seen: set[Expr] = set()
    pending = [root]
    while pending:
        e = pending.pop()
        if e in seen:
            continue
        seen.add(e)
        yield e
        if not isinstance(e, Select):
            pending.extend(children(e))


class _Keys:
    """Assigns numbers to expressions; structurally equal expressions, and only they, share one."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._known: dict[Expr, int] = {}

    def of(self, e: Expr) -> int:
        """The number of *e*."""
        if e not in self._known:
            parts = tuple(self.of(part) for part in children(e))
            own: object = None
            match e:
                case Var():
                    own = e
                case Const(value, dtype):
                    own = (repr(value), dtype)
                case Load(source, _):
                    own = source
                case _:
                    own = (getattr(e, "op", None), getattr(e, "fn", None), e.dtype)
            key = (type(e), own, parts)
            self._known[e] = self._numbers.setdefault(key, len(self._numbers))
        return self._known[e]
