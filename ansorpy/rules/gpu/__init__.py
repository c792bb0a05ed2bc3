"""Shared parts of the rules for GPU blocks: tiles of blocks, warps and rows."""
