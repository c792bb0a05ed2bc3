"""What a program costs: features, the closed-form model, and the model learnt from records."""
