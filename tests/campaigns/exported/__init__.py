"""Networks as exporters write them, compiled as they come and compared with onnxruntime."""
