"""Functions that models define, against onnxruntime: what calls leave out, and bodies in them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from tests.graph.executor import assert_same_as_onnxruntime

HEAD = '<ir_version: 10, opset_import: ["" : 18, "mine" : 1]>'
FUNCTION = '<domain: "mine", opset_import: ["" : 18, "mine" : 1]>'

LEFT_OUT = {
    "in the graph": f"""{HEAD}
        g (float[3, 4] x) => (float[3, 4] y) {{
            a = mine.leaky<alpha = 0.75>(x)
            y = mine.leaky(a)
        }}
        {FUNCTION} leaky <alpha: float = 0.25> (x) => (y) {{
            y = LeakyRelu<alpha: float = @alpha>(x)
        }}""",
    "in another function": f"""{HEAD}
        g (float[3, 4] x) => (float[3, 4] y) {{ y = mine.outer(x) }}
        {FUNCTION} outer (x) => (y) {{ n = Neg(x)  y = mine.leaky(n) }}
        {FUNCTION} leaky <alpha: float = 0.25> (x) => (y) {{
            y = LeakyRelu<alpha: float = @alpha>(x)
        }}""",
    "in a branch, for a branch": f"""{HEAD}
        g (float[3, 4] x, bool c) => (float[3, 4] y) {{
            y = If(c)<then_branch = t () => (a) {{ a = mine.leaky(x, c) }},
                      else_branch = e () => (a) {{ a = Identity(x) }}>
        }}
        {FUNCTION} leaky <alpha: float = 0.25> (x, c) => (y) {{
            y = If(c)<then_branch = t () => (a) {{ a = LeakyRelu<alpha: float = @alpha>(x) }},
                      else_branch = e () => (a) {{ a = Neg(x) }}>
        }}""",
}  # fmt: skip


@pytest.mark.parametrize("text", LEFT_OUT.values(), ids=list(LEFT_OUT))
def test_attributes_that_a_call_leaves_out_have_the_functions_defaults(
    text: str, rng: np.random.Generator
) -> None:
    model = parser.parse_model(text)
    given = model.SerializeToString()
    assert_same_as_onnxruntime(model, rng)
    assert model.SerializeToString() == given, "the caller's model was changed"


def test_a_body_in_a_function_may_give_its_inputs(rng: np.random.Generator) -> None:
    model = parser.parse_model(f"""{HEAD}
        g (float[3, 4] x) => (float[3, 4] y, float[3, 4] z) {{ y, z = mine.repeated(x) }}
        {FUNCTION} repeated (x) => (y, z) {{
            six = Constant<value_int = 6>()
            y, z = Loop(six, "", x, x)<body = b (int64 i, bool c, float[3, 4] s, float[3, 4] k)
                => (bool c, float[3, 4] t, float[3, 4] k) {{ u = Sin(s)  t = Add(u, k) }}>
        }}""")  # fmt: skip
    assert_same_as_onnxruntime(model, rng)
