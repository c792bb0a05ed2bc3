"""Passes over loop programs before they are emitted, shared by the back ends."""
