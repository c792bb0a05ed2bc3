"""ATen operators as ONNX nodes, one file per family; each has a table ``OPERATORS``."""
