"""Lowering of a resolved state to a loop program."""
