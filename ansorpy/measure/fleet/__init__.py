"""Measure on several machines: the messages, the service on each node, the scheduling of trials."""
