"""What this machine does a second, measured once: the figures behind the closed-form model."""
