"""How long work may run, and what may come, estimated from what is known at a moment."""
