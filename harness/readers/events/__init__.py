"""Tables of events, made of what was seen of a cluster."""
