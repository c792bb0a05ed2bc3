"""Walks from program to neighbouring program, in directions that a learned policy chooses."""
