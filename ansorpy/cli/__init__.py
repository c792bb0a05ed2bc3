"""The command line: one file per verb, thin over :mod:`ansorpy.api` and :mod:`ansorpy.evaluation`."""
