"""The engine, with a virtual clock, the life cycle of jobs, and a referee that checks decisions."""

from harness.engine.engine import Engine
from harness.engine.losses import Losses, parse_losses

__all__ = ["Engine", "Losses", "parse_losses"]
