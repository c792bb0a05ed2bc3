"""The command line: one file a verb, thin over :mod:`ansorpy.api` and :mod:`ansorpy.report`."""
