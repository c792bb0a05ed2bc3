"""Reference interpreters in numpy: of definitions, of single elements, and of loop programs."""

from __future__ import annotations

from ansorpy.ir.interpret.dag import run_dag
from ansorpy.ir.interpret.points import evaluate_points
from ansorpy.ir.interpret.program import run_program

__all__ = ["evaluate_points", "run_dag", "run_program"]
