"""Costs of a compiled network besides its arithmetic: calls, the first call, memory."""
