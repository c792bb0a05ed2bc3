"""Elementary functions as scalar expressions, for code generators that lack them."""
