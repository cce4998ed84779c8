"""What is written beside decisions: the figures that allowed them."""
