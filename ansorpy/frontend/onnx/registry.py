"""The table of ONNX operators, from name to importer, collected from the family modules.

Operators of other domains than onnx's own have it in front: ``com.microsoft.FusedMatMul``.  Users
add operators of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

import onnx
from onnx import NodeProto

from ansorpy.errors import UsageError
from ansorpy.frontend.onnx.context import NodeContext, Translate
from ansorpy.frontend.onnx.control import adopted, branch, loop, scan, sequences
from ansorpy.frontend.onnx.control.scopes import Translator
from ansorpy.frontend.onnx.control.values import Value
from ansorpy.frontend.onnx.custom import CUSTOM, Definition, import_custom
from ansorpy.frontend.onnx.images import patches, regions, resize, sampling, unpool
from ansorpy.frontend.onnx.microsoft import OPERATORS as MICROSOFT
from ansorpy.frontend.onnx.ml import OPERATORS as ML
from ansorpy.frontend.onnx.nodes import STANDARD
from ansorpy.frontend.onnx.operators import (
    activation,
    attention,
    constant,
    conv,
    conv_transpose,
    einsum,
    elementwise,
    elimination,
    functions,
    gather,
    logic,
    matmul,
    movement,
    ngrams,
    normalization,
    places,
    pool,
    random,
    reduce,
    scatter,
    signal,
)
from ansorpy.frontend.onnx.quantized import casts, quantize
from ansorpy.frontend.onnx.quantized import products as quantized
from ansorpy.frontend.onnx.recurrent import gru, lstm
from ansorpy.frontend.onnx.selection import boxes, chosen, sorts
from ansorpy.frontend.onnx.training import losses, optimisers

__all__ = [
    "CONTROL", "ON_SHAPES", "OPERATORS", "has_importer", "importer_of",
    "is_known", "operator_of", "register_op", "unknown_advice", "unregister_op",
]  # fmt: skip

Defined = TypeVar("Defined", bound=Definition)


def operator_of(node: NodeProto) -> str:
    """The name of *node*'s operator in the table."""
    return node.op_type if node.domain in STANDARD else f"{node.domain}.{node.op_type}"


OPERATORS: Mapping[str, Translate] = {
    **activation.OPERATORS,
    **attention.OPERATORS,
    **casts.OPERATORS,
    **constant.OPERATORS,
    **boxes.OPERATORS,
    **chosen.OPERATORS,
    **conv.OPERATORS,
    **conv_transpose.OPERATORS,
    **einsum.OPERATORS,
    **elementwise.OPERATORS,
    **elimination.OPERATORS,
    **functions.OPERATORS,
    **gather.OPERATORS,
    **gru.OPERATORS,
    **logic.OPERATORS,
    **losses.OPERATORS,
    **lstm.OPERATORS,
    **matmul.OPERATORS,
    **MICROSOFT,
    **ML,
    **movement.OPERATORS,
    **ngrams.OPERATORS,
    **normalization.OPERATORS,
    **optimisers.OPERATORS,
    **patches.OPERATORS,
    **places.OPERATORS,
    **pool.OPERATORS,
    **quantize.OPERATORS,
    **quantized.OPERATORS,
    **random.OPERATORS,
    **reduce.OPERATORS,
    **regions.OPERATORS,
    **resize.OPERATORS,
    **sampling.OPERATORS,
    **scatter.OPERATORS,
    **sorts.OPERATORS,
    **signal.OPERATORS,
    **unpool.OPERATORS,
}

CONTROL: Mapping[str, Callable[[Translator, NodeContext], list[Value]]] = {
    **adopted.OPERATORS,
    **branch.OPERATORS,
    **loop.OPERATORS,
    **scan.OPERATORS,
    **sequences.OPERATORS,
}
"""Operators with bodies, or defined by such, and those whose operands or results are no tensors."""

ON_SHAPES = frozenset({
    *casts.OPERATORS, *constant.OPERATORS, *elementwise.OPERATORS, *functions.OPERATORS,
    *gather.OPERATORS, *logic.OPERATORS, *movement.OPERATORS, *places.OPERATORS,
    *quantize.OPERATORS, *reduce.OPERATORS, *scatter.OPERATORS, *signal.OPERATORS,
    *sorts.OPERATORS,
})  # fmt: skip
"""Operators with which exporters compute shapes, on integers and on tensors without elements, which
no kernel supports.  For other operators, onnx's reference implementation ignores some attributes
(the clip of an LSTM) and the semantics of older operator sets (softmax)."""


def importer_of(operator: str) -> Translate | None:
    """The importer of an operator in the table, or of one that a user registered."""
    if operator in CUSTOM:
        return partial(import_custom, name=operator)
    return OPERATORS.get(operator)


def has_importer(node: NodeProto) -> bool:
    """Whether *node* is translated by its operator's importer."""
    return operator_of(node) in CONTROL or importer_of(operator_of(node)) is not None


def is_known(node: NodeProto) -> bool:
    """Whether onnx knows the operator of *node*, or an importer does in a domain of its own."""
    if node.domain in STANDARD:
        return bool(onnx.defs.has(node.op_type))
    return has_importer(node) or bool(onnx.defs.has(node.op_type, node.domain))


def unknown_advice(domain: str) -> str:
    """What to do about an operator of *domain* that has no importer."""
    own = "" if _is_onnx(domain) else ", or define it: ap.register_op"
    return f"ansorpy does not have it; export the model without it{own}"


def _is_onnx(domain: str) -> bool:
    """Whether onnx itself defines the operators of *domain*."""
    return domain in STANDARD or domain.startswith("ai.onnx")


def register_op(domain: str, operator: str) -> Callable[[Defined], Defined]:
    """Return a decorator that makes a function the definition of an operator of ONNX models.

    The function gets a :class:`~ansorpy.Tensor` for each operand (None for one that is left out)
    and the node's attributes as keywords.  It returns what :func:`~ansorpy.compute` returns, or a
    tuple with one for each output.  It is called several times for each node.  A function that is
    defined again, as by a cell of a notebook, replaces itself.

    Raises:
        UsageError: The domain is onnx's own, or another function defines the operator already.
    """
    name = f"{domain}.{operator}"
    if _is_onnx(domain):
        raise UsageError(
            f'operators of the domain "{domain}" are defined by onnx',
            hint="choose a domain of your own: com.example",
        )
    if name in OPERATORS:
        raise UsageError(f"ansorpy defines {name} itself", hint="choose another name or domain")
    return CUSTOM.register(name)


def unregister_op(domain: str, operator: str) -> None:
    """Forget an operator that :func:`register_op` added.

    Raises:
        UsageError: No script registered it.
    """
    CUSTOM.remove(f"{domain}.{operator}")
