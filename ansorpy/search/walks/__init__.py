"""Walks on the neighbours of programs whose direction a learned policy chooses."""
