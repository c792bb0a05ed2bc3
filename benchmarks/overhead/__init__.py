"""What a compiled network costs beside its arithmetic: calls, the first call, memory."""
