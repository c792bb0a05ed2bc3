"""Random networks that are valid and numerically stable by construction, compiled and compared."""
