"""A library as other ecosystems take it: a Python wheel, a CMake and pkg-config package."""
