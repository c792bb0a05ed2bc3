"""Costs of a compiled network other than its arithmetic: calls, the first call, memory."""
