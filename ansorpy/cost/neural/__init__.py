"""Cost models that are networks; they need torch, which only models that are made import."""
