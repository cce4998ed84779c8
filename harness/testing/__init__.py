"""A test kit for authors of policies, with small jobs, small clusters, and replays that return decisions.

    from harness.testing import Script, pool, replayed

    jobs = Script().job("a", cpu=2000, seconds=10).job("b", at=1, cpu=2000, seconds=5)
    decisions = replayed(MyPolicy, jobs, pool(cpu=2000))
    assert [row.job for row in decisions.of("finish")] == ["a", "b"]

`harness.testing.worlds` generates random test cases, and `harness.testing.checks` checks whole runs. The page
`docs/testing-policies.md` in the sources of harness explains all of them.
"""

from harness.testing.scripts import Decisions, JobRow, Row, Script, Stint, nodes, pool, queues, replayed

__all__ = ["Decisions", "JobRow", "Row", "Script", "Stint", "nodes", "pool", "queues", "replayed"]
