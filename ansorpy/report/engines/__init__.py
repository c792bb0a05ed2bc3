"""Engines that run an ONNX model: ours and the peers, all behind one small protocol."""
