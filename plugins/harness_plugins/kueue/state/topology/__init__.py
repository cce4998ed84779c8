"""The domains of topologies, and the room that workloads leave in them."""
