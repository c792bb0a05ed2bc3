"""Pictures for the documentation, drawn from real runs."""
