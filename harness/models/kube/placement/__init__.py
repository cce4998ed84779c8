"""Placement of pods: filters, scores, and the scheduling cycle that combines them."""
