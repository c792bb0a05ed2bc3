"""Operators on images: samples at places between pixels, and regions of interest."""
