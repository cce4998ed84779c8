"""When what waits now will start: many futures of a live cluster, drawn from its history."""
