"""Measuring on several machines: what is sent to them, what each does, who gets which trial."""
