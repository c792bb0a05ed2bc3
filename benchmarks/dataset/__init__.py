"""Programs of a zoo of networks, recorded as data for cost models."""
