"""The command line: a file for each verb, over :mod:`ansorpy.api` and ansorpy.evaluation."""
