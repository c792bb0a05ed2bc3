"""A campaign of faults: kills, full disks, locked databases, bad workers, lost machines."""
