"""Names in comments of generated C."""

from __future__ import annotations

__all__ = ["in_comment"]


def in_comment(text: str) -> str:
    """*text* on one line, without what ends a C comment or continues it on the next line.

    >>> in_comment("a*/b"), in_comment("a\\nb"), in_comment("what??/")
    ('a* /b', 'a b', 'what? ?/')
    """
    text = " ".join(text.splitlines()).replace("\\", "/")
    return text.replace("??/", "? ?/").replace("*/", "* /").replace("/*", "/ *")
