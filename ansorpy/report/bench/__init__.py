"""Time engines fairly: one process per engine, one at a time, in alternating bursts."""
