"""Libraries as files: how they are linked, described, checked and loaded."""
