"""Results of algorithms: sorting, compaction and the like, as loop programs and in numpy.

A formula defines each element by itself; the position of an element in a sorted row depends on all
others.  A routine states such a result: how a loop program computes it, and what it is.
"""
