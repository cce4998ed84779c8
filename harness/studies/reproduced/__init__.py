"""Published results, replayed: the published figures beside ours, with the reason of each difference."""
