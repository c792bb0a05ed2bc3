"""Rewriting and simplification of expressions and statements."""
