"""Long campaigns of random cases, each a command: ``python -m tests.campaigns --help``."""
