"""The tuning database."""
