"""Engines that run an ONNX model, ours and others, behind one small protocol."""
