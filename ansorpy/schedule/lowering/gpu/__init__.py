"""Lowering for GPU blocks: launches, barriers, pipelines, shared sums and fragments."""
