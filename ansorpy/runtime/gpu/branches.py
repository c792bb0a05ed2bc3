"""Which calls of a run may overlap on a GPU, by the memory that they read and write.

Calls are given to *branches*: calls of a branch run in order, and a call waits for the calls of
other branches that it depends on.  A call depends on an earlier one if one of the two writes memory
that the other reads or writes, so reuse of the arena's memory orders calls as data do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ansorpy.codegen.cuda.device.protocol import Order
from ansorpy.ir.loops import Role
from ansorpy.ir.sizes import fixed, fixed_all
from ansorpy.ir.strides import span
from ansorpy.runtime.execution_plan import ExecutionPlan, PlanStep
from ansorpy.runtime.sizes import SizedPorts

__all__ = ["MAX_BRANCHES", "CallAccess", "accesses_of", "branched", "ordered", "workspaces"]

MAX_BRANCHES = 4
"""Branches of a run at most: an inception module's; each has a workspace of its own."""


@dataclass(frozen=True)
class CallAccess:
    """Bytes of a memory *region* that a call writes, or only reads.

    They lie between *start* and *end*; if *pitch* is positive, there are rows of *width* bytes that
    begin *pitch* bytes apart, as in a slice along a tensor's last dimension.
    """

    region: object
    start: int
    end: int
    is_written: bool
    pitch: int = 0
    width: int = 0

    def conflicts(self, other: CallAccess) -> bool:
        """Whether the order of the two accesses matters."""
        return (
            (self.is_written or other.is_written)
            and self.region == other.region
            and self.start < other.end
            and other.start < self.end
            and not self._lies_between(other)
        )

    def _lies_between(self, other: CallAccess) -> bool:
        """Whether rows of one lie in the gaps between rows of the other."""
        if not self.pitch or self.pitch != other.pitch:
            return False
        after = (other.start - self.start) % self.pitch
        return self.width <= after <= self.pitch - other.width


def accesses_of(step: PlanStep) -> list[CallAccess]:
    """What the call *step* reads and writes besides its workspace; all of its sizes are known."""
    found = []
    for argument, param in zip(step.args, step.params, strict=True):
        region, start = (argument.region, argument.number), fixed(argument.offset)
        is_written, size = param.role is Role.OUTPUT, param.dtype.bytes
        shape = fixed_all(param.shape)
        if param.strides is None:
            found.append(CallAccess(region, start, start + prod(shape) * size, is_written))
            continue
        strides = fixed_all(param.strides)
        pitch, width = _rows(shape, strides)
        end = start + fixed(span(shape, strides)) * size
        found.append(CallAccess(region, start, end, is_written, pitch * size, width * size))
    return found


def _rows(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """Pitch and width of the rows of a tensor; (0, 0) if it has no rows with a common pitch."""
    width, dims = 1, [(n, stride) for n, stride in zip(shape, strides, strict=True) if n > 1]
    while dims and dims[-1][1] == width:
        width *= dims.pop()[0]
    pitch = dims[-1][1] if dims else 0
    regular = all(stride % pitch == 0 for _, stride in dims) and 0 < width <= pitch
    return (pitch, width) if regular else (0, 0)


def ordered(plan: ExecutionPlan) -> list[Order]:
    """When each call may run; one after another if places depend on sizes or are shared."""
    if SizedPorts.of(plan.inputs, plan.outputs) is not None or plan.slots or plan.aliases:
        return [Order(0)] * len(plan.steps)
    return branched([accesses_of(step) for step in plan.steps])


def workspaces(steps: Sequence[PlanStep], orders: Sequence[Order]) -> list[int]:
    """The bytes of workspace of each branch: those of its call that needs the most."""
    sizes = [0] * (1 + max((order.branch for order in orders), default=0))
    for step, order in zip(steps, orders, strict=True):
        sizes[order.branch] = max(sizes[order.branch], fixed(step.code.shared_bytes))
    return sizes


def branched(calls: Sequence[Sequence[CallAccess]], most: int = MAX_BRANCHES) -> list[Order]:
    """The branch of each of *calls*, in order, and the calls on other branches that it waits for.

    A call goes on with the branch of a call that it depends on, if it is the first to do so.
    Otherwise it takes a branch whose last call it depends on anyway, or a new one.
    """
    orders: list[Order] = []
    before: list[int] = []
    """For each call, those that end before it begins, as the bits of a number."""
    last: list[int] = []
    """The last call of each branch."""
    for number, accesses in enumerate(calls):
        needed = [n for n in range(number) if _depends(accesses, calls[n])]
        known = _all_before(needed, before)
        branch = _branch(needed, known, last, most)
        if branch == len(last):
            last.append(number)
            implied = 0
        else:
            implied = before[last[branch]] | 1 << last[branch]
            last[branch] = number
        after = []
        for n in reversed(needed):
            if not implied >> n & 1:
                after.append(n)
                implied |= before[n] | 1 << n
        before.append(implied)
        orders.append(Order(branch, tuple(reversed(after))))
    return orders


def _depends(call: Sequence[CallAccess], earlier: Sequence[CallAccess]) -> bool:
    return any(mine.conflicts(other) for mine in call for other in earlier)


def _all_before(needed: Sequence[int], before: Sequence[int]) -> int:
    found = 0
    for n in needed:
        found |= before[n] | 1 << n
    return found


def _branch(needed: Sequence[int], known: int, last: Sequence[int], most: int) -> int:
    """The branch of a call that depends on the calls *needed* and, through them, on all *known*."""
    followed = [n for n in needed if n in last]
    if followed:
        return last.index(followed[-1])
    for branch, end in enumerate(last):
        if known >> end & 1:
            return branch
    return len(last) if len(last) < most else last.index(min(last))
