"""Published results of others, replayed: their figures beside ours, with the reason of each difference."""
