"""A plugin whose policies do not get through; in a module that processes which are begun anew can import."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from policies import Greedy

import harness


class Wrong(Greedy):
    """Decides what cannot be."""

    def cycle(self, now: int) -> Any:
        yield harness.Wake(0)


class Exits(Greedy):
    """Ends the program while it decides, as if all were fine."""

    def cycle(self, now: int) -> Any:
        sys.exit()


class Killed(Greedy):
    """Its process is ended while it decides, as for want of memory."""

    def cycle(self, now: int) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)
        yield from ()


class Failing:
    """A plugin whose policies do not get through."""

    @harness.hookimpl
    def harness_register_policies(self, register: Any) -> None:
        register(harness.PolicySpec("wrong", Wrong, help="for tests"))
        register(harness.PolicySpec("exits", Exits, help="for tests"))
        register(harness.PolicySpec("killed", Killed, help="for tests"))
