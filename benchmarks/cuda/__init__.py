"""Measurements on a GPU, as one script that can be stopped and resumed (see __main__)."""
