"""Fair timing of engines: one process per engine, one at a time, in alternating bursts."""
