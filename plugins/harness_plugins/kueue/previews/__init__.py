"""Previews: rules that Kueue does not have, and that people argue about. They are off unless they are set."""
