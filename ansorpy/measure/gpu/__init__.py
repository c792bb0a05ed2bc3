"""Candidates for GPUs: checked and timed by events in a worker that has the device."""
