"""What need not be done again: every decision is the same without it, only later."""
