"""The errors of elementary functions and of reductions, beside what is documented."""
