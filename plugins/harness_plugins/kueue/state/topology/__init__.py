"""Models the domains of topologies, and their free capacity."""
