"""Elementary functions as scalar expressions, for generators that lack the function."""
