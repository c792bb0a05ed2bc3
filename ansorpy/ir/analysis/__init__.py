"""Static analyses of programs and definitions: accesses, bounds, conditions, operation counts."""
