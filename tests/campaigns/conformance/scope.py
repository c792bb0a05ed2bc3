"""Cases that are not compiled, and cases whose numbers nobody else can draw."""

from __future__ import annotations

__all__ = ["DRAWN", "is_drawn", "out_of_scope"]

_TEXTS = "texts are not compiled"
_IMAGES = "image files are not decoded"
_OUT: dict[str, str] = {
    "test_ai_onnx_ml_label_encoder_string_int": _TEXTS,
    "test_ai_onnx_ml_label_encoder_tensor": _TEXTS,
    "test_equal_string": _TEXTS,
    "test_regex_full_match": _TEXTS,
    "test_string_concat": _TEXTS,
    "test_string_split": _TEXTS,
    "test_strnorm": _TEXTS,
    "test_image_decoder": _IMAGES,
}
"""How the names of cases begin that are out of scope, and why."""

DRAWN = "expects what numpy draws"
_DRAWN = ("test_bernoulli", "test_training_dropout")


def out_of_scope(name: str) -> str:
    """Why the case *name* is not to be compiled; empty if it is."""
    return next((reason for start, reason in _OUT.items() if name.startswith(start)), "")


def is_drawn(name: str) -> bool:
    """Whether the case *name* expects numbers that numpy drew at random."""
    return name.startswith(_DRAWN) and "zero_ratio" not in name
