"""In-place arenas: kernels write results over operands that are not used afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ansorpy.graph.memory import ArenaPlan, Lifetime, plan_arena
from ansorpy.graph.network import Network

__all__ = ["Overwritten", "in_place"]

Overwritten = Sequence[tuple[int, int]]
"""Pairs (input number, output number) where the kernel may write the output over the input."""


def in_place(network: Network, allowed: Mapping[str, Overwritten]) -> Network:
    """*network* with results placed over operands in its arena, if that makes it smaller.

    Args:
        allowed: By workload key, the inputs that its kernel may overwrite.
    """
    lifetimes = network.lifetimes()
    holder = {name: name for name in lifetimes}
    for place, call in enumerate(network.calls):
        for given, made in allowed.get(call.key, ()):
            operand, result = call.inputs[given], call.outputs[made]
            if _is_free(network, operand, result, place, lifetimes):
                first = _root(holder, operand)
                if first != _root(holder, result):
                    holder[_root(holder, result)] = first
                    break
    if all(name == root for name, root in holder.items()):
        return network
    arena = _shared(lifetimes, holder)
    return replace(network, arena=arena) if arena.bytes < network.arena.bytes else network


def _is_free(
    network: Network, operand: str, result: str, place: int, lifetimes: Mapping[str, Lifetime]
) -> bool:
    """True when *result*, written by call number *place*, may take the memory of *operand*.

    Nothing may read *operand* after the call.  Both must be whole values of the arena and have the
    same size, whatever the sizes of dimensions, and the call must read *operand* only once.
    """
    if operand not in lifetimes or result not in lifetimes:
        return False
    wholes = [network.root(name) for name in network.calls[place].inputs]
    a, b = lifetimes[operand], lifetimes[result]
    return (
        wholes.count(operand) == 1
        and a.last == place == b.first
        and a.size_bytes == b.size_bytes
    )  # fmt: skip


def _root(holder: Mapping[str, str], name: str) -> str:
    while holder[name] != name:
        name = holder[name]
    return name


def _shared(lifetimes: Mapping[str, Lifetime], holder: Mapping[str, str]) -> ArenaPlan:
    """The plan in which values with the same holder have the same place."""
    together: dict[str, Lifetime] = {}
    for name, own in lifetimes.items():
        root = _root(holder, name)
        known = together.setdefault(root, own)
        together[root] = Lifetime(
            min(known.first, own.first), max(known.last, own.last), own.size_bytes
        )
    plan = plan_arena(together)
    roots = {name: _root(holder, name) for name in lifetimes}
    offsets = {name: plan.offsets[root] for name, root in roots.items()}
    numbers = {name: plan.numbers[root] for name, root in roots.items() if plan.slots}
    return replace(plan, offsets=offsets, numbers=numbers)
