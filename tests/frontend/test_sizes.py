"""Networks with open sizes: imported once, compared with onnxruntime at many sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

from ansorpy.errors import UnsupportedModel
from ansorpy.graph import optimize
from ansorpy.graph.ops import Elementwise
from ansorpy.graph.regions import Result
from ansorpy.size_ranges import AnySize
from tests.frontend.models import graph_model, node
from tests.frontend.sized import assert_same_at, import_sized

RNG = np.random.default_rng(7)
Constants = dict[str, np.ndarray]


def ints(*values: int) -> np.ndarray:
    return np.asarray(values, np.int64)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def number(value: float) -> np.ndarray:
    return np.asarray(value, np.float32)


def one(value: int) -> np.ndarray:
    return np.asarray(value, np.int64)


BERT = graph_model(
    [
        node("Shape", ["ids"], ["shape"]),
        node("Gather", ["shape", "i1"], ["n"]),
        node("Unsqueeze", ["n", "axes0"], ["n1"]),
        node("Slice", ["positions", "zero", "n1", "axes1"], ["place"]),
        node("Gather", ["words", "ids"], ["word"]),
        node("Gather", ["table", "place"], ["position"]),
        node("Add", ["word", "position"], ["x"]),
        node("Unsqueeze", ["mask", "axes12"], ["mask4"]),
        node("Cast", ["mask4"], ["maskf"], to=TensorProto.FLOAT),
        node("Sub", ["onef", "maskf"], ["off"]),
        node("Mul", ["off", "low"], ["bias"]),
        node("MatMul", ["x", "w"], ["q"]),
        node("Reshape", ["q", "heads"], ["q4"]),
        node("Transpose", ["q4"], ["qt"], perm=[0, 2, 1, 3]),
        node("Transpose", ["q4"], ["kt"], perm=[0, 2, 3, 1]),
        node("MatMul", ["qt", "kt"], ["scores"]),
        node("Add", ["scores", "bias"], ["masked"]),
        node("Softmax", ["masked"], ["p"], axis=-1),
        node("MatMul", ["p", "qt"], ["mixed"]),
        node("Transpose", ["mixed"], ["back"], perm=[0, 2, 1, 3]),
        node("Shape", ["back"], ["bshape"]),
        node("Gather", ["bshape", "i0"], ["b"]),
        node("Gather", ["bshape", "i1"], ["s"]),
        node("Unsqueeze", ["b", "axes0"], ["b1"]),
        node("Unsqueeze", ["s", "axes0"], ["s1"]),
        node("Concat", ["b1", "s1", "eight"], ["flat"], axis=0),
        node("Reshape", ["back", "flat"], ["y"]),
    ],
    {"ids": ("batch", "seq"), "mask": ("batch", "seq")},
    ["y"],
    {
        "i0": one(0), "i1": one(1), "axes0": ints(0), "axes1": ints(1), "axes12": ints(1, 2),
        "zero": ints(0), "positions": np.arange(64, dtype=np.int64)[None],
        "words": floats(9, 8), "table": floats(64, 8), "w": floats(8, 8),
        "onef": number(1), "low": number(-1e4),
        "heads": ints(0, 0, 2, 4), "eight": ints(8),
    },
    types={"ids": TensorProto.INT64, "mask": TensorProto.INT64},
)  # fmt: skip
"""Embeddings at positions, heads by Reshape(0, 0, 2, 4), a mask, and the shape put together."""

PAST = graph_model(
    [
        node("Concat", ["past", "x"], ["keys"], axis=1),
        node("Shape", ["x"], ["xs"]),
        node("Shape", ["keys"], ["ks"]),
        node("Gather", ["xs", "i1"], ["n"]),
        node("Gather", ["ks", "i1"], ["m"]),
        node("Sub", ["m", "n"], ["before"]),
        node("Range", ["before", "m", "i1"], ["rows"]),
        node("Range", ["i0", "m", "i1"], ["columns"]),
        node("Unsqueeze", ["rows", "axis1"], ["rows2"]),
        node("LessOrEqual", ["columns", "rows2"], ["seen"]),
        node("Where", ["seen", "zero", "never"], ["mask"]),
        node("Transpose", ["keys"], ["turned"], perm=[0, 2, 1]),
        node("MatMul", ["x", "turned"], ["scores"]),
        node("Add", ["scores", "mask"], ["masked"]),
        node("Softmax", ["masked"], ["p"], axis=-1),
        node("MatMul", ["p", "keys"], ["y"]),
        node("Identity", ["keys"], ["present"]),
    ],
    {"x": ("batch", "seq", 8), "past": ("batch", "past", 8)},
    ["y", "present"],
    {"i0": one(0), "i1": one(1), "axis1": ints(1), "zero": number(0),
     "never": number(-1e30)},
)  # fmt: skip
"""A decoder with a cache: positions from past + seq, and a mask made of two ranges."""

CASES: Mapping[str, tuple[ModelProto, dict[str, object], Sequence[Mapping[str, int]]]] = {
    "bert": (BERT, {"batch": (1, 4), "seq": (1, 64)},
             [{"batch": 1, "seq": 1}, {"batch": 3, "seq": 17}, {"batch": 2, "seq": 64}]),
    "past": (PAST, {"batch": (1, 4), "seq": (1, 8), "past": (0, 40)},
             [{"batch": 1, "seq": 1, "past": 5}, {"batch": 2, "seq": 3, "past": 31}]),
}  # fmt: skip


def image(*nodes: NodeProto, **constants: np.ndarray) -> ModelProto:
    """A network of one image ``x``, two channels, of any height and width."""
    return graph_model(list(nodes), {"x": (1, 2, "h", "w")}, ["y"], constants, opset=18)


def resized(mode: str, **attributes: str) -> ModelProto:
    last = {"nearest": 0.5, "linear": 1.5, "cubic": 3.0}[mode]
    if "coordinate_transformation_mode" in attributes:
        last = 3.0
    scales = np.asarray([1, 1, 2, last], np.float32)
    made = node("Resize", ["x", "", "scales"], ["y"])
    made.attribute.extend(
        helper.make_attribute(*item) for item in {"mode": mode, **attributes}.items()
    )
    return image(made, scales=scales)


def to_sizes(mode: str, coordinates: str) -> ModelProto:
    """An image halved, and resized to its own size again, as segmenters do."""
    return image(
        node("MaxPool", ["x"], ["half"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Shape", ["x"], ["sizes"], start=2),
        node("Shape", ["half"], ["kept"], end=2),
        node("Concat", ["kept", "sizes"], ["all"], axis=0),
        node("Resize", ["half", "", "", "all"], ["y"], mode=mode,
             coordinate_transformation_mode=coordinates, nearest_mode="floor"),
    )  # fmt: skip


DOUBLED = image(
    node("Shape", ["x"], ["sizes"], start=2),
    node("Cast", ["sizes"], ["exact"], to=TensorProto.FLOAT),
    node("Mul", ["exact", "two"], ["twice"]),
    node("Floor", ["twice"], ["whole"]),
    node("Cast", ["whole"], ["wanted"], to=TensorProto.INT64),
    node("Concat", ["kept", "wanted"], ["all"], axis=0),
    node("Resize", ["x", "", "", "all"], ["y"], mode="nearest",
         coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
    two=np.asarray([2, 1.5], np.float32), kept=ints(1, 2),
)  # fmt: skip
PADDED = image(
    node("Shape", ["x"], ["shape"]),
    node("Gather", ["shape", "i3"], ["w"]),
    node("Mod", ["w", "i8"], ["over"]),
    node("Sub", ["i8", "over"], ["missing"]),
    node("Mod", ["missing", "i8"], ["more"]),
    node("Unsqueeze", ["more", "axes0"], ["more1"]),
    node("Concat", ["zeros", "more1"], ["pads"], axis=0),
    node("Pad", ["x", "pads"], ["wide"], mode="constant"),
    node("Reshape", ["wide", "blocks"], ["y"]),
    i3=one(3), i8=one(8), axes0=ints(0), zeros=np.zeros(7, np.int64), blocks=ints(0, 0, -1, 8),
)  # fmt: skip
IMAGES = [{"h": 1, "w": 2}, {"h": 7, "w": 13}, {"h": 32, "w": 31}]
IMAGE_DIMS: dict[str, object] = {"h": (1, 40), "w": (2, 40)}
HALVED: dict[str, object] = {"h": (2, 40), "w": (2, 40)}
ROWS = [{"n": 1}, {"n": 7}, {"n": 30}]


def rows(*nodes: NodeProto, **constants: np.ndarray) -> ModelProto:
    """A network of ``x``, any number of rows of eight."""
    return graph_model(list(nodes), {"x": ("n", 8)}, ["y"], constants)


OF_ROWS = {
    "view": rows(
        node("Shape", ["x"], ["s"]), node("Gather", ["s", "i0"], ["n"]),
        node("Unsqueeze", ["n", "z"], ["n1"]), node("Concat", ["n1", "m1"], ["to"], axis=0),
        node("Unsqueeze", ["x", "i1"], ["x3"]), node("Reshape", ["x3", "to"], ["y"]),
        i0=one(0), z=ints(0), m1=ints(-1), i1=ints(1),
    ),
    "flatten": rows(node("Flatten", ["x"], ["y"], axis=0)),
    "mean": rows(node("ReduceMean", ["x"], ["y"], axes=[0])),
    "size": rows(
        node("Size", ["x"], ["s"]), node("Cast", ["s"], ["f"], to=TensorProto.FLOAT),
        node("Div", ["x", "f"], ["y"]),
    ),
    "zeros": rows(
        node("Shape", ["x"], ["s"]), node("ConstantOfShape", ["s"], ["zero"]),
        node("Concat", ["zero", "x"], ["y"], axis=0),
    ),
    "expanded": rows(
        node("Shape", ["x"], ["s"]), node("Concat", ["two", "s"], ["to"], axis=0),
        node("Mul", ["ones", "m1"], ["minus"]), node("Equal", ["to", "minus"], ["is"]),
        node("Where", ["is", "ones", "to"], ["shape"]), node("Expand", ["x", "shape"], ["y"]),
        two=ints(2), ones=ints(1, 1, 1), m1=ints(-1),
    ),
    "tiled": rows(node("Tile", ["x", "times"], ["y"], ), times=ints(2, 3)),
    "triangle": rows(
        node("Transpose", ["x"], ["t"]), node("MatMul", ["x", "t"], ["square"]),
        node("Trilu", ["square"], ["y"], upper=0),
    ),
    "eye": rows(
        node("Transpose", ["x"], ["t"]), node("MatMul", ["x", "t"], ["square"]),
        node("EyeLike", ["square"], ["one"], k=1), node("Add", ["square", "one"], ["y"]),
    ),
    "first": rows(node("Slice", ["x", "i0", "i1"], ["y"]), i0=ints(0), i1=ints(1)),
    "last": rows(node("Slice", ["x", "i0", "i1"], ["y"]), i0=ints(-1), i1=ints(1 << 62)),
    "backwards": rows(
        node("Slice", ["x", "start", "end", "axis", "step"], ["y"]),
        start=ints(-1), end=ints(-(1 << 62)), axis=ints(0), step=ints(-1),
    ),
    "every_other": rows(
        node("Slice", ["x", "start", "end", "axis", "step"], ["y"]),
        start=ints(0), end=ints(1 << 62), axis=ints(0), step=ints(2),
    ),
    "halves": rows(
        node("Shape", ["x"], ["s"], end=1), node("Div", ["s", "two"], ["half"]),
        node("Sub", ["s", "half"], ["rest"]), node("Concat", ["half", "rest"], ["parts"], axis=0),
        node("Split", ["x", "parts"], ["a", "b"], axis=0),
        node("Concat", ["b", "a"], ["y"], axis=0),
        two=ints(2),
    ),
    "squeezed": rows(
        node("Unsqueeze", ["x", "i1"], ["x3"]), node("Squeeze", ["x3", "i1"], ["y"]), i1=ints(1)
    ),
    "sines": rows(
        node("Shape", ["x"], ["s"]), node("Gather", ["s", "i0"], ["n"]),
        node("Cast", ["n"], ["f"], to=TensorProto.FLOAT), node("Range", ["f0", "f", "f1"], ["p"]),
        node("Sin", ["p"], ["sin"]), node("Unsqueeze", ["sin", "axis1"], ["column"]),
        node("Add", ["x", "column"], ["y"]),
        i0=one(0), f0=number(0), f1=number(1), axis1=ints(1),
    ),
    "top": rows(node("TopK", ["x", "one"], ["y", "places"], axis=0), one=ints(1)),
    "argmax": rows(
        node("ArgMax", ["x"], ["places"], axis=0), node("Cast", ["places"], ["y"], to=1)
    ),
    "einsum": rows(node("Einsum", ["x", "x"], ["y"], equation="ab,cb->ca")),
    "filled": rows(
        node("Shape", ["x"], ["s"]), node("Gather", ["s", "i0"], ["n"]),
        node("Unsqueeze", ["n", "z"], ["n1"]), node("Concat", ["n1", "one"], ["to"], axis=0),
        node("Expand", ["n", "to"], ["column"]), node("Tile", ["n1", "n1"], ["row"]),
        node("Unsqueeze", ["row", "i1"], ["column2"]), node("Sub", ["column", "column2"], ["d"]),
        node("Add", ["d", "column"], ["whole"]), node("Cast", ["whole"], ["f"], to=1),
        node("Add", ["x", "f"], ["y"]),
        i0=one(0), z=ints(0), one=ints(1), i1=ints(1),
    ),
    "shape_out": rows(
        node("Shape", ["x"], ["s"]), node("Cast", ["s"], ["y"], to=TensorProto.FLOAT)
    ),
}  # fmt: skip
CASES = {
    **CASES,
    **{name: (model, {"n": (2, 40)}, ROWS[1:]) for name, model in OF_ROWS.items()},
    "nearest": (resized("nearest", nearest_mode="floor"), IMAGE_DIMS, IMAGES[1:]),
    "linear": (resized("linear"), IMAGE_DIMS, IMAGES),
    "pytorch": (resized("linear", coordinate_transformation_mode="pytorch_half_pixel"),
                IMAGE_DIMS, IMAGES),
    "cubic": (resized("cubic"), IMAGE_DIMS, IMAGES),
    "align": (resized("linear", coordinate_transformation_mode="align_corners"),
              IMAGE_DIMS, IMAGES[1:]),
    "again": (to_sizes("linear", "half_pixel"), HALVED, IMAGES[1:]),
    "again_corners": (to_sizes("linear", "align_corners"), HALVED, IMAGES[1:]),
    "again_nearest": (to_sizes("nearest", "asymmetric"), HALVED, IMAGES[1:]),
    "doubled": (DOUBLED, IMAGE_DIMS, IMAGES),
    "padded": (PADDED, IMAGE_DIMS, IMAGES),
    "average": (
        image(node("AveragePool", ["x"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1],
                   strides=[2, 1])), IMAGE_DIMS, IMAGES,
    ),
    "pool": (image(node("GlobalAveragePool", ["x"], ["y"])), IMAGE_DIMS, IMAGES),
    "conv": (
        image(node("Conv", ["x", "k"], ["y"], pads=[1, 1, 1, 1], strides=[2, 2]),
              k=floats(3, 2, 3, 3)), IMAGE_DIMS, IMAGES,
    ),
    "filled_row": (
        graph_model(
            [node("Shape", ["z"], ["s"]),
             node("ConstantOfShape", ["s"], ["fives"],
                  value=helper.make_tensor("v", TensorProto.FLOAT, [1], [5.0])),
             node("Slice", ["fives", "i0", "i1"], ["row"]), node("Add", ["x", "row"], ["sum"]),
             node("MatMul", ["sum", "w"], ["y"])],
            {"z": ("n", 4), "x": (4,)}, ["y"], {"i0": ints(0), "i1": ints(1), "w": floats(4, 3)},
        ), {"n": (1, 9)}, [{"n": 1}, {"n": 5}],
    ),
    "grid": (
        graph_model(
            [node("Shape", ["t"], ["s"], end=1), node("Concat", ["s", "rest"], ["size"], axis=0),
             node("AffineGrid", ["t", "size"], ["y"])],
            {"t": ("n", 2, 3)}, ["y"], {"rest": ints(1, 4, 5)}, opset=20,
        ), {"n": (1, 4)}, [{"n": 1}, {"n": 3}],
    ),
    "thirds": (
        graph_model(
            [node("Split", ["x"], ["a", "b", "c"], axis=0, num_outputs=3),
             node("Concat", ["c", "a", "b"], ["y"], axis=0)],
            {"x": ("n", 4)}, ["y"], opset=18,
        ), {"n": (1, 40)}, [{"n": 3}, {"n": 5}, {"n": 8}, {"n": 37}],
    ),
    "pixels": (
        image(node("SpaceToDepth", ["x"], ["d"], blocksize=2), node("Relu", ["d"], ["r"]),
              node("DepthToSpace", ["r"], ["y"], blocksize=2)),
        {"h": (2, 40, 2), "w": (2, 40, 2)}, [{"h": 2, "w": 6}, {"h": 14, "w": 32}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_network_is_the_same_at_all_sizes(name: str) -> None:
    model, dims, every = CASES[name]
    graph = import_sized(model, **dims)  # type: ignore[arg-type]
    assert_same_at(model, graph, RNG, every)


def refusal(model: ModelProto, **dims: AnySize) -> str:
    with pytest.raises(UnsupportedModel) as caught:
        import_sized(model, **dims)
    return str(caught.value)


def branching(*condition: NodeProto, **constants: np.ndarray) -> ModelProto:
    """``x`` doubled if ``c`` is true, or else negated."""
    info = helper.make_tensor_value_info

    def branch(*nodes: NodeProto) -> onnx.GraphProto:
        return helper.make_graph(nodes, "b", [], [info("b", TensorProto.FLOAT, None)])

    then = branch(node("Add", ["x", "x"], ["b"]))
    other = branch(node("Neg", ["x"], ["b"]))
    taken = node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    return rows(node("Shape", ["x"], ["s"], end=1), *condition, taken, **constants)


def test_a_branch_that_all_sizes_take_is_taken() -> None:
    model = branching(
        node("Greater", ["s", "two"], ["g"]), node("Squeeze", ["g"], ["c"]), two=ints(2)
    )
    for low, op in ((3, "ADD"), (0, "NEG")):
        high = 9 if low else 2
        [made] = import_sized(model, n=(low, high)).nodes
        assert isinstance(made.op, Elementwise) and made.op.fn.name == op
    assert isinstance(import_sized(model, n=(1, 9)).nodes[-1].op, Result)


@pytest.mark.parametrize(
    ("nodes", "constants", "message"),
    [
        (
            [node("Reshape", ["x", "s2"], ["y"])],
            {"s2": ints(5, -1)},
            "they must be equal",
        ),
        ([node("Tile", ["x", "part"], ["y"])], {}, "repeats"),
        ([node("Squeeze", ["x"], ["y"])], {}, "either may be larger; choose one size"),
    ],
)
def test_shapes_that_are_not_decided_name_the_dimension(
    nodes: list[NodeProto], constants: Constants, message: str
) -> None:
    part = [node("Shape", ["x"], ["s"]), node("Sub", ["s", "eight"], ["less"]),
            node("Min", ["less", "two"], ["part"])]  # fmt: skip
    model = rows(*part, *nodes, eight=ints(8), two=ints(2), **constants)
    assert message in refusal(model, n=(1, 9))


def test_a_cache_may_be_empty_in_a_batch_of_any_size() -> None:
    graph = import_sized(PAST, past=0, batch=(1, 4), seq=(1, 8))
    assert [str(e) for e in graph.types[graph.outputs[0].value].shape] == ["batch", "seq", "8"]
    assert_same_at(PAST, graph, RNG, [{"batch": 3, "seq": 5}])


def test_a_part_of_a_table_may_begin_at_an_open_place() -> None:
    """As the positions of new words behind a cache."""
    model = graph_model(
        [
            node("Shape", ["past"], ["before"], start=1, end=2),
            node("Add", ["before", "three"], ["end"]),
            node("Slice", ["table", "before", "end"], ["place"]),
            node("Add", ["x", "place"], ["y"]),
        ],
        {"x": (3, 8), "past": (1, "past", 8)},
        ["y"],
        {"table": floats(64, 8), "three": ints(3)},
    )
    graph = import_sized(model, past=(0, 40))
    assert_same_at(model, graph, RNG, [{"past": 5}, {"past": 40}])
    assert [made.op.label for made in optimize(graph).nodes] == ["slice", "add"]


def test_masks_of_one_number_cost_nothing() -> None:
    """Exporters write a mask of ones where none is given."""
    model = rows(
        node("Shape", ["x"], ["s"]), node("ConstantOfShape", ["s"], ["zeros"]),
        node("Sub", ["one", "zeros"], ["ones"]), node("Mul", ["x", "ones"], ["y"]),
        one=number(1),
    )  # fmt: skip
    graph = optimize(import_sized(model, n=(1, 9)))
    assert [type(made.op) for made in graph.nodes] == [Elementwise]
