"""Models the placement of pods, with filters, scores, and the scheduling cycle that combines them."""
