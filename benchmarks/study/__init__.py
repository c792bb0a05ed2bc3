"""Studies: experiments of hours, carried out in slices, and the pages made from their outcomes."""
