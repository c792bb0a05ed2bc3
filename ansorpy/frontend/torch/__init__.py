"""PyTorch networks as ONNX models: ATen graphs, whose operators become those of ONNX.

Only those who have torch may import the modules of this folder.
"""
