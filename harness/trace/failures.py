"""Models node failures by drawing when each node fails and when it returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import gamma, log
from random import Random
from typing import TYPE_CHECKING

from harness.base.errors import InputError, OptionError
from harness.base.units import HOUR, SECOND, exact_duration, parse_duration
from harness.base.values import Value, fixed
from harness.cluster.changes.event_table import MOST_ROWS

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.trace.trace import Trace

_REPAIR = 4 * HOUR
_ANY = "*"


@fixed()
class Failures(Value):
    """A model of nodes that fail and return. Nodes fail individually, or all nodes of a domain fail together.

    The time until a node fails has a Weibull distribution with the mean `mtbf`, and begins at the origin or
    when the node returns. The node is then absent for an exponentially distributed time with the mean `mttr`.
    All times are whole seconds and at least one second.

    Attributes:
        mtbf: for each pool, the mean time between failures of a node or domain, in microseconds. The key `*`
            means all other pools.
        mttr: the mean time to repair, in microseconds.
        shape: the shape of the Weibull distribution. The value 1 gives an exponential distribution, and a
            smaller value gives many early failures.
        together: a node label. Nodes with the same value of the label fail together. If it is "", each node
            fails individually.
        seed: the seed of the draws. Equal seeds give equal failures.
    """

    mtbf: tuple[tuple[str, int], ...]
    mttr: int = _REPAIR
    shape: float = 1.0
    together: str = ""
    seed: int = 0

    @classmethod
    def parse(cls, text: str) -> Failures:
        """Parse `mtbf:[POOL=]SPAN,... mttr:SPAN shape:K together:LABEL seed:N`. Only `mtbf` is required.

        Raises:
            OptionError: a part has another form or is out of range.
        """
        parts = dict.fromkeys(("mtbf", "mttr", "shape", "together", "seed"), "")
        for part in text.split():
            name, _, value = part.partition(":")
            if name not in parts:
                raise OptionError(f"failures: {part!r} is none of {', '.join(parts)}")
            parts[name] = value
        if not parts["mtbf"]:
            raise OptionError(
                "the failure rate of nodes is not given",
                hint="add --mtbf SPAN, such as 30d, the mean time between failures",
            )
        pairs = [each.rpartition("=") for each in parts["mtbf"].split(",")]
        mtbf = tuple((pool or _ANY, _span("--mtbf", span)) for pool, _, span in pairs)
        if len(dict(mtbf)) < len(mtbf):
            raise OptionError(f"--mtbf {parts['mtbf']} names a pool twice")
        return cls(
            mtbf,
            _span("--mttr", parts["mttr"]) if parts["mttr"] else _REPAIR,
            _shape(parts["shape"]) if parts["shape"] else 1.0,
            parts["together"],
            _seed(parts["seed"] or "0"),
        )

    def __str__(self) -> str:
        spans = ",".join(
            f"{'' if pool == _ANY else f'{pool}='}{exact_duration(mean)}" for pool, mean in self.mtbf
        )
        parts = [f"mtbf:{spans}", f"mttr:{exact_duration(self.mttr)}"]
        parts += [f"shape:{self.shape:g}"] if self.shape != 1 else []
        parts += [f"together:{self.together}"] if self.together else []
        parts += [f"seed:{self.seed}"] if self.seed else []
        return " ".join(parts)

    def over(self, cluster: Cluster, trace: Trace) -> Cluster:
        """Returns a cluster whose nodes fail while the jobs of a trace run.

        Failures are drawn up to the time at which the last job would end if every job started when it
        arrived.

        Raises:
            InputError: the cluster lacks nodes, or a pool or label of the model, or nodes fail too often.
        """
        from harness.cluster.changes.over_time import named_like

        if not cluster.nodes:
            raise InputError("--mtbf: the cluster has no nodes that could fail")
        frame = trace.frame
        ends = frame["submit_time"].to_physical() + frame["duration"].to_physical()
        last: int = ends.max()  # type: ignore[assignment]
        rows = list(self._rows(cluster, last - trace.origin))
        if not rows:
            return cluster
        return named_like(cluster.patched(rows), cluster)

    def _rows(self, cluster: Cluster, end: int) -> Iterator[Mapping[str, str]]:
        count = 0
        for domain, (nodes, mean) in self._domains(cluster).items():
            for down, up in self._spans(domain, mean, end):
                count += len(nodes)
                if count > MOST_ROWS:
                    raise InputError(
                        f"--mtbf: nodes fail more than {MOST_ROWS:,} times in this trace",
                        hint="give a longer --mtbf, or a shorter --window",
                    )
                times = {"time": exact_duration(down), "until": exact_duration(up)}
                for node in nodes:
                    yield {**times, "kind": "Node", "name": node, "field": "remove", "value": ""}

    def _spans(self, domain: str, mean: int, end: int) -> Iterator[tuple[int, int]]:
        """Yields the times at which a domain fails and returns, in microseconds since the origin."""
        random = Random(f"{self.seed}/{domain}")  # noqa: S311 - Python promises this sequence on every version
        scale = mean / gamma(1 + 1 / self.shape)
        now = 0
        while True:
            now += _whole(scale * _exponential(random) ** (1 / self.shape))
            if now > end:
                return
            up = now + _whole(self.mttr * _exponential(random))
            yield now, up
            now = up

    def _domains(self, cluster: Cluster) -> dict[str, tuple[list[str], int]]:
        """Returns the nodes of each domain that fails as a whole, and the mean time between its failures."""
        from harness.cluster.kinds.core import node_names

        means = dict(self.mtbf)
        pools = {node: pool for pool, nodes in node_names(cluster.manifests).items() for node in nodes}
        unknown = means.keys() - {_ANY} - set(pools.values())
        if unknown:
            raise InputError(f"--mtbf: the cluster has no NodePool {min(unknown)!r}")
        own = {str(each["metadata"]["name"]) for each in cluster.manifests if each.get("kind") == "Node"}
        found: dict[str, tuple[list[str], int]] = {}
        for name, node in cluster.nodes.items():
            if name not in own and name not in pools:
                continue  # an event table cannot name copies that were made by scaling
            mean = means.get(pools.get(name, ""), means.get(_ANY))
            if mean is None:
                continue
            value = node.labels.get(self.together) if self.together else None
            found.setdefault(name if value is None else f"{self.together}={value}", ([], mean))[0].append(
                name
            )
        if self.together and not any(self.together in node.labels for node in cluster.nodes.values()):
            raise InputError(f"--together: no node has the label {self.together!r}")
        return found


def _exponential(random: Random) -> float:
    return -log(1 - random.random())


def _whole(time: float) -> int:
    return max(1, round(time / SECOND)) * SECOND


def _span(option: str, text: str) -> int:
    try:
        span = parse_duration(text)
    except InputError as error:
        raise OptionError(f"{option}: {error.message}") from error
    if span < SECOND:
        raise OptionError(f"{option} {text} must be at least 1 s")
    return span


def _shape(text: str) -> float:
    try:
        shape = float(text)
    except ValueError:
        shape = 0.0
    if not 0.1 <= shape <= 10:
        raise OptionError(
            f"--failure-shape {text!r} is not a number from 0.1 to 10",
            hint="1 is an exponential distribution, and 0.7 gives early failures",
        )
    return shape


def _seed(text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise OptionError(f"--failure-seed {text!r} is not a whole number of 0 or more")
    return int(text)
