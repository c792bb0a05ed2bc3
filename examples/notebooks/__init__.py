"""The notebooks of docs/gallery, as scripts; ``python -m examples.notebooks`` executes them."""
