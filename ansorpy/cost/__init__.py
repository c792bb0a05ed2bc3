"""Cost models: features, the closed-form model, and the model learned from records."""
