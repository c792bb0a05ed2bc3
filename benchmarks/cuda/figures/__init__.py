"""What is measured beside torch: products, operators, attention, networks, and a search."""
