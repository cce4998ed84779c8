"""Reading recorded traces: the formats' own cost, on files of the size of the largest published ones."""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path

from harness.plugins import load
from harness.trace.trace import open_trace
from harness.trace.write import write_trace

RECORDS = 243_306  # as many as SDSC Blue Horizon has


class StandardWorkloadFormat:
    """A log of 18 columns."""

    unit = "CPU-s"
    timeout = 600

    def setup(self) -> None:
        """A log like the largest one."""
        self.folder = tempfile.TemporaryDirectory()
        self.log = Path(self.folder.name) / "log.swf"
        draw = random.Random(3)
        with self.log.open("w") as file:
            file.write("; UnixStartTime: 956700003\n; MaxProcs: 1152\n")
            for number in range(1, RECORDS + 1):
                run, size = draw.randrange(86_400), 8 * draw.randrange(1, 144)
                file.write(
                    f"{number} {300 * number} {draw.randrange(7200)} {run} {size} -1 -1 {size} 64800 -1 1 "
                    f"{draw.randrange(468)} -1 -1 {draw.randrange(5)} -1 -1 -1\n"
                )
        self.plugins = load(only=["readers"])

    def teardown(self) -> None:
        """Remove it."""
        self.folder.cleanup()

    def track_convert(self) -> float:
        """CPU-seconds to convert it to Parquet; at most 5 are wanted."""
        began = time.process_time()
        write_trace(open_trace(self.log, self.plugins), self.log.with_suffix(".parquet"))
        return time.process_time() - began
