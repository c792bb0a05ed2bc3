"""Cost models: features, the analytic model, and the model learned from records."""
