"""Which node a pod gets: filters, scores, and the scheduling cycle that puts them together."""
