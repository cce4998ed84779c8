"""Previews: proposed rules that Kueue does not have. They are off unless they are set."""
