"""Functions of one element, of two, and of many; comparisons, choices and casts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import helper

from tests.campaigns.networks.growing import Growing
from tests.campaigns.networks.values import Value

__all__ = ["ELEMENTWISE", "partner"]

_ANYWHERE: dict[str, tuple[str, ...]] = {
    "Abs": (), "Atan": (), "Asinh": (), "Ceil": (), "Celu": ("alpha",), "Cos": (), "Dropout": (),
    "Elu": ("alpha",), "Erf": (), "Floor": (), "HardSigmoid": ("alpha", "beta"), "HardSwish": (),
    "Identity": (), "LeakyRelu": ("alpha",), "Mish": (), "Neg": (), "Relu": (), "Round": (),
    "Selu": ("alpha", "gamma"), "Shrink": ("bias", "lambd"), "Sigmoid": (), "Sign": (), "Sin": (),
    "Softplus": (), "Softsign": (), "Tanh": (), "ThresholdedRelu": ("alpha",),
}  # fmt: skip
_POSITIVE = ("Log", "Sqrt", "Reciprocal")
_INSIDE_ONE = ("Acos", "Asin", "Atanh", "Tan", "Exp", "Sinh", "Cosh")


def anywhere(net: Growing) -> None:
    """A function of any number, with its attributes."""
    name = net.one_of(list(_ANYWHERE))
    given: dict[str, Any] = {
        a: float(net.uniform(0.1, 1.2)) for a in _ANYWHERE[name] if net.chance(0.7)
    }
    net.add(name, net.pick(), **given)


def gelu(net: Growing) -> None:
    if net.opset < 20:  # which has no Gelu
        return
    net.add("Gelu", net.pick(), approximate=net.one_of(["none", "tanh"]))


def positive(net: Growing) -> None:
    net.add(net.one_of(_POSITIVE), _positive(net, net.pick()))


def inside_one(net: Growing) -> None:
    bounded = net.add(net.one_of(["Tanh", "Softsign", "Sin"]), net.pick())
    net.add(net.one_of(_INSIDE_ONE), net.add("Mul", bounded, net.like(bounded, 0.9)))


def above_one(net: Growing) -> None:
    x = net.add("Abs", net.pick())
    net.add("Acosh", net.add("Add", x, net.like(x, 1.25)))


def clip(net: Growing) -> None:
    x = net.pick()
    low, high = sorted(net.uniform(-1.5, 1.5, 2))
    net.add("Clip", x, net.like(x, low) if net.chance(0.8) else None, net.like(x, high))


def arithmetic(net: Growing) -> None:
    """Two operands that broadcast to each other, in either order."""
    name, x = net.one_of(["Add", "Sub", "Mul", "Div", "Add", "Mul"]), net.pick()
    other = partner(net, x)
    if name == "Div":
        net.add(name, x, _positive(net, other))
    elif net.chance():
        net.add(name, x, other)
    else:
        net.add(name, other, x)


def variadic(net: Growing) -> None:
    """Up to four operands, each of which broadcasts to all before it."""
    x = net.pick()
    operands, shape = [x], x.shape
    for _ in range(net.count(0, 3)):
        operands.append(partner(net, x, shape))
        shape = np.broadcast_shapes(shape, operands[-1].shape)
    net.add(net.one_of(["Max", "Min", "Mean", "Sum"]), *operands)


def power(net: Growing) -> None:
    x = net.pick()
    if net.chance():
        net.add("Pow", x, net.constant(np.asarray(net.count(1, 3))))
    else:
        net.add("Pow", _positive(net, x), net.like(x, net.uniform(-1.5, 2.0)))


def prelu(net: Growing) -> None:
    x = net.pick_rank(2, 4)
    slope = (x.shape[1], *[1] * (x.rank - 2)) if net.chance() else ()
    net.add("PRelu", x, net.like(x, net.uniform(-0.5, 1.0, *slope)))


def whole_numbers(net: Growing) -> None:
    """Arithmetic of integers."""
    x = net.pick_integer()
    name = net.one_of(["Add", "Sub", "Mul", "Max", "Min", "Mod", "Abs", "Neg", "Sign"])
    signed = x.dtype.kind == "i"
    if name in ("Abs", "Neg", "Sign"):
        net.add(name if signed else "Identity", x)
    elif name == "Mod":
        net.add(name, x, net.like(x, net.one_of([2, 3, 5])))
    else:
        shape = x.shape[net.count(0, x.rank) :] if x.rank else ()
        other = net.rng.integers(-3 if signed else 0, 4, shape)
        net.add(name, x, net.like(x, other))


def comparison(net: Growing) -> None:
    name = net.one_of(["Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"])
    if name == "Equal" or net.chance(0.3):
        x = net.pick_integer()
        net.add(name, x, net.like(x, net.count(0, 2)))
    else:
        x = net.pick()
        net.add(name, x, partner(net, x))


def logic(net: Growing) -> None:
    flags = net.pick_flags()
    if net.chance(0.3):
        net.add("Not", flags)
        return
    other = net.constant(net.rng.random(_broadcast(net, flags)) < 0.5)
    net.add(net.one_of(["And", "Or", "Xor"]), flags, other)


def choice(net: Growing) -> None:
    """``Where``, with a condition that is computed from an operand, given, or constant."""
    x = net.pick()
    way = net.count(0, 2)
    if way == 0:
        flags = net.add("Less", x, net.like(x, net.normal()))
    elif way == 1:
        flags = net.new_input(_broadcast(net, x), np.bool_)
    else:
        flags = net.constant(net.rng.random(_broadcast(net, x)) < 0.5)
    net.add("Where", flags, x, partner(net, x))


def cast(net: Growing) -> None:
    """To another type; floats that become integers are first away from the next step."""
    way = net.count(0, 3)
    if way == 0:
        _cast(net, net.pick_flags(), net.floats)
    elif way == 1:
        _cast(net, net.pick_integer(), net.floats)
    elif way == 2:
        x = net.pick()
        scaled = net.add("Mul", x, net.like(x, 3.3))
        _cast(net, scaled, np.dtype(net.one_of([np.int32, np.int64, np.int8])))
    else:
        other = net.one_of([t for t in (np.float32, np.float16, np.float64) if t != net.floats])
        narrow = _cast(net, net.pick(), np.dtype(other))
        _cast(net, net.add("Neg", narrow) if net.chance() else narrow, net.floats)


def cast_like(net: Growing) -> None:
    like = net.constant(np.zeros(1))
    net.add("CastLike", net.pick_integer(), like, dtype=like.dtype)


def not_a_number(net: Growing) -> None:
    net.add(net.one_of(["IsNaN", "IsInf"]), net.pick())


def partner(net: Growing, x: Value, shape: tuple[int, ...] | None = None) -> Value:
    """A value, an input or a constant of the type of *x*.

    It broadcasts to *shape*, by default that of *x*, or the other way round.
    """
    wanted = x.shape if shape is None else shape
    found = [v for v in net.values if v.dtype == x.dtype and _fit(v.shape, wanted)]
    if found and net.chance(0.6):
        value: Value = net.one_of(found)
        return value
    sizes = _broadcast(net, x)
    if net.chance(0.2) and x.dtype == net.floats:
        return net.new_input(sizes)
    return net.like(x, net.normal(*sizes))


def _cast(net: Growing, x: Value, to: np.dtype[Any]) -> Value:
    return net.add("Cast", x, dtype=to, to=helper.np_dtype_to_tensor_dtype(to))


def _positive(net: Growing, x: Value) -> Value:
    """*x* mapped to numbers away from zero."""
    name = net.one_of(["Abs", "Softplus", "Sigmoid", "Square"])
    made = net.add("Mul", x, x) if name == "Square" else net.add(name, x)
    return net.add("Add", made, net.like(x, 0.5))


def _fit(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    pairs = zip(reversed(a), reversed(b), strict=False)
    return all(p == q or 1 in (p, q) for p, q in pairs)


def _broadcast(net: Growing, x: Value) -> list[int]:
    """A shape that broadcasts to that of *x*: leading sizes left out, others 1."""
    sizes = [1 if net.chance(0.25) else extent for extent in x.shape]
    return sizes[net.count(0, len(sizes)) :] if net.chance() else sizes


ELEMENTWISE: dict[Callable[[Growing], None], float] = {
    anywhere: 6, gelu: 0.5, positive: 1, inside_one: 1, above_one: 0.3, clip: 1, arithmetic: 5,
    variadic: 1, power: 0.7, prelu: 0.5, whole_numbers: 1.5, comparison: 1, logic: 0.7, choice: 1.5,
    cast: 1.5, cast_like: 0.3, not_a_number: 0.2,
}  # fmt: skip
