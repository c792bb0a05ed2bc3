"""The closed-form cost model: what a program costs, from its loops and the machine alone."""
