"""What torch calls with each graph that it has captured."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._guards import TracingContext
from torch.fx import GraphModule

from ansorpy.api.arguments import CompileArguments, SearchArguments
from ansorpy.api.request import Request
from ansorpy.errors import UsageError
from ansorpy.frontend.torch.decompositions import decompositions
from ansorpy.frontend.torch.whole import keep_whole
from ansorpy.options import completed, those
from ansorpy.torch_backend.captured import CapturedGraph

__all__ = ["Backend", "backend"]

_LOG = logging.getLogger(__name__)


class Backend:
    """Compiles graphs of torch with ansorpy, without tuning unless *arguments* say otherwise.

    ``graphs`` has what was compiled, in the order in which torch captured it.

    Args:
        arguments: As of :func:`ansorpy.compile`; by default, nothing is measured, and programs have
            as many threads as those of torch.

    Raises:
        UsageError: An argument is unknown, or a value is wrong.
    """

    def __init__(self, **arguments: Unpack[CompileArguments]) -> None:
        completed(CompileArguments, arguments)
        self._arguments: Mapping[str, Any] = {"effort": "none", **arguments}
        Request.of(**those(SearchArguments, self._arguments))  # refused now, not by the first call
        self.graphs: list[CapturedGraph] = []

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self._arguments.items())
        return f"<Backend {given}: {len(self.graphs)} graphs>"

    def __getstate__(self) -> dict[str, Any]:
        """A copy compiles its own graphs, as torch captures them again for a copied module."""
        return {**self.__dict__, "graphs": []}

    def __call__(self, module: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        """A function that computes what *module* does, by torch if that needs gradients."""
        if _needs_gradients(module, example_inputs):
            _LOG.warning(
                "a graph that needs gradients is run by torch: call the model under "
                "torch.no_grad() or torch.inference_mode() to have it compiled"
            )
            return module.forward
        compiler = aot_autograd(
            fw_compiler=self._compiled,
            inference_compiler=self._compiled,
            decompositions=decompositions(),
        )
        return compiler(keep_whole(module), example_inputs)

    def _compiled(self, module: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        graph = CapturedGraph(module, _constants(), self._arguments)
        self.graphs.append(graph)
        return make_boxed_func(graph)


def backend(
    module: GraphModule,
    example_inputs: Sequence[Any],
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """The backend that is registered as ``"ansorpy"``; *options* are arguments of Backend.

    Raises:
        UsageError: There is a *mode*, or as Backend.
    """
    if mode is not None:
        raise UsageError(
            f'the backend has no mode "{mode}"', hint='pass options={"effort": "quick"} to search'
        )
    return Backend(**(options or {}))(module, example_inputs)


def _needs_gradients(module: GraphModule, inputs: Sequence[Any]) -> bool:
    tensors = [*inputs, *module.parameters()]
    return torch.is_grad_enabled() and any(
        isinstance(x, torch.Tensor) and x.requires_grad for x in tensors
    )


def _constants() -> frozenset[int]:
    """Which arguments of the graph are parameters and buffers that it does not change."""
    known = TracingContext.get().fw_metadata
    changed = {n for n, info in enumerate(known.input_info) if info.mutates_data}
    return frozenset(known.static_input_indices) - changed
