"""The schedule primitives, one frozen dataclass each: a step acts, prints and serialises."""
