"""The schedule primitives, one frozen dataclass each, which can be applied, printed and stored."""
