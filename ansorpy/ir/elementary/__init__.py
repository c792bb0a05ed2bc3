"""Elementary functions as scalar expressions: what generators without the function compute."""
