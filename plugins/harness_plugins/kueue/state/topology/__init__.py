"""The domains of topologies, and their free capacity."""
