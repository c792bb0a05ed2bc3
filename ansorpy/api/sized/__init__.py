"""One program for all sizes of a definition: which sizes are tuned, and which schedules serve."""
