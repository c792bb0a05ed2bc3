"""Modules of torch as ONNX models, by way of ``torch.export``."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from onnx import ModelProto
from torch.export import AdditionalInputs, ExportedProgram, ShapesCollection
from torch.export.dynamic_shapes import _combine_args, _tree_map_with_path
from torch.export.graph_signature import InputKind, OutputKind

from ansorpy.errors import UnsupportedModel, UnsupportedRow, UsageError
from ansorpy.frontend.onnx.default_sizes import default_range
from ansorpy.frontend.onnx.dim_texts import dim_flags, names_in
from ansorpy.frontend.torch.arrays import array_of
from ansorpy.frontend.torch.decompositions import decompositions
from ansorpy.frontend.torch.sizes import Untranslatable
from ansorpy.frontend.torch.table import OPERATORS, name_of
from ansorpy.frontend.torch.translate import is_operator, refusal, translate
from ansorpy.size_ranges import AnySize, SizeRange, shape_of, size_of

__all__ = ["ExportedNetwork", "network_of"]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class ExportedNetwork:
    """A module as a model, with the values of the inputs that are parameters and buffers.

    Args:
        limits: The least and the greatest size of dimensions, by name; None for no greatest one.
            Other sizes may need another network: the module's code may have branches.
    """

    model: ModelProto
    constants: Mapping[str, NDArray[Any]]
    limits: Mapping[str, tuple[int, int | None]]

    def dims(
        self, given: Mapping[str, AnySize], shapes: Mapping[str, Sequence[AnySize]]
    ) -> dict[str, AnySize]:
        """The sizes of dimensions that have limits: those *given*, or else all.

        Those that *shapes* of inputs have are checked, too, but they are left out.

        Raises:
            UsageError: A size that is given is beyond the limits.
        """
        found, sizes = dict(given), dict(given)
        known = {name: shape_of(shape, name) for name, shape in shapes.items()}
        for info in self.model.graph.input:
            dims = info.type.tensor_type.shape.dim
            for dim, size in zip(dims, known.get(info.name, ()), strict=False):
                sizes.setdefault(dim.dim_param, size)
        for name, (low, high) in self.limits.items():
            if name not in sizes:
                found[name] = self._usual(name, low) if high is None else SizeRange(low, high)
                continue
            size = size_of(sizes[name], name)
            least, most = (size, size) if isinstance(size, int) else (size.low, size.high)
            if least < low or most > (most if high is None else high):
                raise UsageError(
                    f"the module was exported for {name} from {low} to "
                    f"{'any size' if high is None else high}, not for {size}",
                    hint="export it for more sizes: dynamic_shapes=",
                )
        return found

    def _usual(self, name: str, low: int) -> SizeRange:
        """Sizes from *low* on: the usual, or up to a few times the least."""
        usual = next(
            default_range(name, info, axis)
            for info in self.model.graph.input
            for axis, dim in enumerate(info.type.tensor_type.shape.dim)
            if name == dim.dim_param or name in (names_in(dim.dim_param) or ())
        )
        low = -(-max(low, usual.low) // usual.step) * usual.step
        found = SizeRange(low, max(usual.high, 4 * low), usual.step)
        flags = dim_flags({name: found})
        _LOG.warning("the module has no largest size; assuming %s", flags)
        return found


def network_of(
    module: torch.nn.Module | ExportedProgram,
    example_inputs: Sequence[Any] | None = None,
    dynamic_shapes: Any = None,
) -> ExportedNetwork:
    """The network that *module* computes for inputs like *example_inputs*.

    Args:
        dynamic_shapes: Which axes may have other sizes, as ``torch.export.export`` takes it.

    Raises:
        UsageError: There are no example inputs, the module changes its buffers or inputs, or it is
            not on the CPU.
        UnsupportedModel: Some operators have no translation; its table lists all of them.  Or
            torch cannot export the module, whose error is the cause.
    """
    name = type(module).__name__
    if not isinstance(module, ExportedProgram):
        if example_inputs is None:
            raise UsageError(
                "a module of torch is compiled for example inputs",
                hint="pass them: compile(module, (x,))",
            )
        module = _exported(module, example_inputs, dynamic_shapes)
    specified = _specified(module, dynamic_shapes)
    _demand_cpu(module)
    program = module.run_decompositions(_table())
    _demand_pure(program)
    graph = program.graph
    graph.eliminate_dead_code()
    rows = [
        UnsupportedRow(node.name, name_of(node.target), attribute=why, domain="aten",
                       advice="compute it outside of the network")
        for node in graph.nodes
        if is_operator(node) and (why := refusal(node)) is not None
    ]  # fmt: skip
    if rows:
        raise _unsupported(name, rows)
    try:
        translated = translate(graph, name, called=_dim_names(program, specified))
    except Untranslatable as error:
        raise _unsupported(name, [UnsupportedRow(error.node, "", attribute=str(error))]) from None
    limits = {
        # Sizes from 2 on are what torch assumes, not what it checks: 1 is possible, too.
        name: (1 if low == 2 else low, high)
        for name, (low, high) in translated.dims.items()
        if high is not None or low > 2
    }
    return ExportedNetwork(translated.model, _constants(program), limits)


def _exported(
    module: torch.nn.Module, example_inputs: Sequence[Any], dynamic_shapes: Any
) -> ExportedProgram:
    if isinstance(example_inputs, torch.Tensor):
        raise UsageError("the example inputs are a tuple, not one tensor", hint="pass (x,)")
    try:
        with torch.no_grad():
            return torch.export.export(module, tuple(example_inputs), dynamic_shapes=dynamic_shapes)
    except Exception as error:  # of any class: the module's own code runs, too
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise UnsupportedModel(
            f"torch.export fails for {type(module).__name__}: {reason}",
            hint='torch.compile(module, backend="ansorpy") takes modules that it cannot capture',
        ) from error


def _unsupported(name: str, rows: Sequence[UnsupportedRow]) -> UnsupportedModel:
    return UnsupportedModel(
        f"{len(rows)} operator(s) of {name} cannot be compiled",
        rows=rows,
        hint='torch.compile(module, backend="ansorpy") leaves such operators to torch',
    )


def _table() -> Any:
    """What ``run_decompositions`` shall replace: all that has no translation."""
    table = torch.export.default_decompositions()
    for op in [op for op in table if name_of(op) in OPERATORS]:
        table.pop(op)
    table.update(decompositions())
    return table


def _demand_cpu(program: ExportedProgram) -> None:
    """Refuse a program whose parameters or inputs are on another device."""
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and value.device.type != "cpu":
            raise UsageError(
                f"the module is on {value.device}",
                hint='pass module.cpu() and inputs on the CPU; target="cuda" compiles for the GPU',
            )


def _demand_pure(program: ExportedProgram) -> None:
    """Refuse a program that changes tensors which it does not return."""
    kept = (OutputKind.USER_OUTPUT, OutputKind.TOKEN)
    changed = [o.target for o in program.graph_signature.output_specs if o.kind not in kept]
    if changed:
        raise UsageError(
            f"the module changes {', '.join(map(str, changed))} in place",
            hint="take it as an input and return it, or use torch.compile",
        )


def _constants(program: ExportedProgram) -> dict[str, NDArray[Any]]:
    """The values of parameters, buffers and tensors in the code, by the names of the inputs."""
    held = {**program.state_dict, **program.constants}
    return {
        spec.arg.name: array_of(held[spec.target])
        for spec in program.graph_signature.input_specs
        if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
    }


def _specified(program: ExportedProgram, dynamic_shapes: Any) -> list[Any]:
    """What *dynamic_shapes* says of each tensor among the example inputs, which may be nested."""
    if program.example_inputs is None:
        return []
    if isinstance(dynamic_shapes, ShapesCollection | AdditionalInputs):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(program, *program.example_inputs)
    if not dynamic_shapes:
        return []
    given: Any = _combine_args(program, *program.example_inputs)
    if not isinstance(dynamic_shapes, Mapping):
        given = type(dynamic_shapes)(given.values())
    found: list[Any] = []

    def note(path: object, value: object, axes: object = None) -> None:
        if isinstance(value, torch.Tensor):
            found.append(axes)

    _tree_map_with_path(note, given, dynamic_shapes, tree_name="inputs")
    return found


def _dim_names(program: ExportedProgram, specified: Sequence[Any]) -> dict[str, str]:
    """The names of torch's symbols, by what is *specified* for the axes of each tensor."""
    inputs = [
        node.meta["val"] for node in program.graph.nodes
        if node.name in program.graph_signature.user_inputs
    ]  # fmt: skip
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    found: dict[str, str] = {}
    for value, axes in zip(tensors, specified, strict=False):
        numbered = axes.items() if isinstance(axes, Mapping) else enumerate(axes or ())
        for axis, dim in numbered:
            if hasattr(dim, "__name__"):
                found[str(value.shape[axis])] = dim.__name__
    return found
