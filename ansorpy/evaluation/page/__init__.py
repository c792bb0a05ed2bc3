"""A tuning run as one HTML page; :mod:`ansorpy.evaluation.page.write` writes it."""
