"""Networks beside onnxruntime and openvino."""
