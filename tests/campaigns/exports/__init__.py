"""Campaigns about what is exported: its code, its thread team, and what its use leaves behind."""
