"""One file an operator family: its tensor expression, and the same operator in the peers' words."""
