"""Engines that run ONNX models, ours and others, with a common interface."""
