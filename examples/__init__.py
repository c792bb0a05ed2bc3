"""Small programs that use ansorpy."""
