"""Bound inference: loop extents, and the boxes of tensors that loops need."""
