"""The stages of the GPU benchmark."""
