"""One file per operator family: its tensor expression, and the same operator for the peers."""
