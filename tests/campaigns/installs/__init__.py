"""The wheel in empty environments: ``python -m tests.campaigns.installs``."""
