"""The networks in torch, torchvision, timm, transformers and scikit-learn."""
