"""Compare whole networks with onnxruntime and openvino."""
