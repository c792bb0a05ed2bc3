"""Programs with one fault planted in them, which the interpreter has to find."""

from __future__ import annotations

from ansorpy.ir.loops import Seq, Stmt, WaitCopies, WaitProducts
from ansorpy.ir.rewrite import Rewriter

__all__ = ["Less"]


class Less(Rewriter):
    """Leaves out the second statement of a kind, or lets waits return too early."""

    def __init__(self, kind: type[Stmt]):
        super().__init__()
        self.kind = kind
        self.seen = 0

    def stmt(self, s: Stmt) -> Stmt:
        if isinstance(s, self.kind):
            self.seen += 1
            if isinstance(s, WaitCopies | WaitProducts):
                return type(s)(s.pending + 1)
            return Seq(()) if self.seen == 2 else s
        return super().stmt(s)
