"""Names and layouts of buffers in comments of generated C."""

from __future__ import annotations

from ansorpy.ir.loops import Buffer

__all__ = ["in_comment", "layout_comment"]


def in_comment(text: str) -> str:
    """*text* on one line, without what ends a C comment or continues it on the next line.

    >>> in_comment("a*/b"), in_comment("a\\nb"), in_comment("what??/")
    ('a* /b', 'a b', 'what? ?/')
    """
    text = " ".join(text.splitlines()).replace("\\", "/")
    return text.replace("??/", "? ?/").replace("*/", "* /").replace("/*", "/ *")


def layout_comment(buffer: Buffer) -> str:
    """The shape of *buffer*, and its strides in elements unless it is dense, as a comment."""
    shape = in_comment(", ".join(map(str, buffer.shape)))
    apart = "" if buffer.strides is None else in_comment(f" strides {list(buffer.strides)}")
    return f"/* [{shape}]{apart} */"
