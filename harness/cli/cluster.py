"""`harness cluster` checks manifests, changes them, and creates initial manifests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from harness.base.errors import ClusterError, InputError
from harness.base.text import aligned, counted, printable
from harness.cli.cluster_events import events
from harness.cli.cluster_init import init
from harness.cli.cluster_mig import slice_lines, slices_of
from harness.cli.cluster_room import room_lines
from harness.cli.cluster_slurm import from_slurm
from harness.cli.cluster_work import work_of, work_tables
from harness.cli.group import Group
from harness.cli.output import deliver_manifests, spare
from harness.cli.screen import fold, results_only, tell, terminal_width
from harness.cluster.model import Cluster, ResourceGroup
from harness.cluster.yaml.sources import sources

_EXAMPLES = """\b
Examples:
  harness cluster check traces/philly.cluster.yaml
  harness cluster check --json traces/philly.cluster.yaml
  harness cluster check - < traces/philly.cluster.yaml
"""


@click.group(cls=Group, epilog=_EXAMPLES)
def cluster() -> None:
    """Check, patch, convert or create the manifests of a cluster."""


cluster.add_command(events)
cluster.add_command(init)
cluster.add_command(from_slurm)


@cluster.command(epilog=_EXAMPLES)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=str))
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON; amounts are in millicores of CPU or in base units."
)
def check(files: tuple[str, ...], *, as_json: bool) -> None:
    """Check manifests and show what a replay would take from them.

    FILE contains Kubernetes manifests as kubectl prints them, in YAML or JSON, and may be gzipped. It can
    also be a folder of such files, or - for standard input. Several files form one cluster, also if commas
    separate them. stderr names the parts that harness does not model. The command lists all faults; if there
    are any, the exit code is 2.
    """
    from harness.cluster.load import load_cluster

    try:
        with results_only():
            found = load_cluster(Path(",".join(files)))
    except ClusterError as error:
        lines = [f"{error.source}: {fault}" for fault in error.faults]
        raise InputError("\n".join(lines), hint=error.hint) from error
    for warning in found.warnings:
        tell(f"warning: {warning}")
    content = _content(found)
    click.echo(json.dumps(content, indent=2) if as_json else fold("\n".join(_report(content))))


_CONVERT_EXAMPLES = """\b
Examples:
  harness cluster convert --to elasticquota --keep traces/philly.cluster.yaml -o both.cluster.yaml
  harness cluster convert --to elasticquota traces/philly.cluster.yaml
"""


@cluster.command(epilog=_CONVERT_EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--to", required=True, metavar="[elasticquota|kueue|KIND]",
    help="The kind of quotas to write. KIND is a plugin's kind, such as Queue.scheduling.volcano.sh.",
)  # fmt: skip
@click.option(
    "--keep", is_flag=True, help="Keep the quotas of FILE as well, so that one file has both kinds."
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file. [default: stdout]")
def convert(file: Path, to: str, *, keep: bool, output: Path | None) -> None:
    """Turn quotas of one kind into another, such as ClusterQueues into elastic quotas.

    From ClusterQueues to elastic quotas, the nominal quota becomes `min`, and the nominal quota plus the
    borrowing limit becomes `max`. The opposite conversion does the reverse.
    The command prints the manifests of FILE with the converted quotas. stderr names the settings that have no
    counterpart.
    """
    from harness.cluster.convert import convert as converted
    from harness.cluster.load import load_cluster

    if output is not None:
        for each in sources(file):
            spare(each, output)
    with results_only():
        found = converted(load_cluster(file), to, keep=keep)
    for note in found.notes:
        tell(f"no counterpart: {note}")
    deliver_manifests(found.manifests, output)


_PATCH_EXAMPLES = """\b
Examples:
  harness cluster patch traces/mix.cluster.yaml docs/examples/more-nodes.yaml
  harness cluster patch traces/mix.cluster.yaml docs/examples/more-quota.yaml -o patched.yaml
"""


@cluster.command(epilog=_PATCH_EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("patches", nargs=-1, required=True, metavar="PATCH...", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file. [default: stdout]")
def patch(file: Path, patches: tuple[Path, ...], *, output: Path | None) -> None:
    """Print manifests as `harness replay --patch` changes them.

    The command applies the patches to the manifests of FILE in the given order. A patch contains the kind,
    the name and the changed fields of one or more objects. The result has no comments.
    """
    from harness.cluster.load import load_cluster
    from harness.cluster.manifests import to_manifests

    if output is not None:
        for path in (file, *patches):
            for each in sources(path):
                spare(each, output)
    with results_only():
        changed = load_cluster(file)
        for each in patches:
            changed = changed.patched(each)
    deliver_manifests(to_manifests(changed), output)


def _content(cluster: Cluster) -> dict[str, Any]:
    from harness.cluster.content import told
    from harness.cluster.flavor_nodes import rooms
    from harness.cluster.kinds.kueue_differences import counting_sentences

    return {
        "source": cluster.source,
        "digest": cluster.digest,
        "nodes": {"count": len(cluster.nodes), "total": dict(cluster.capacity) if cluster.nodes else {}},
        "mig": slices_of(cluster),
        "flavors": sorted(cluster.flavors),
        "flavor_nodes": [room.to_json() for room in rooms(cluster)],
        "cluster_queues": [
            {"name": queue.name, "cohort": queue.cohort, "nominal": _nominal(queue.resource_groups)}
            for queue in cluster.cluster_queues.values()
        ],
        "cohorts": [
            {"name": cohort.name, "parent": cohort.parent, "nominal": _nominal(cohort.resource_groups)}
            for cohort in cluster.cohorts.values()
        ],
        "local_queues": _fields(cluster.local_queues.values(), "namespace", "name", "cluster_queue"),
        "kueue": None if cluster.kueue_controller is None else asdict(cluster.kueue_controller),
        "counting": list(counting_sentences(cluster)),
        "elastic_quotas": [
            {
                "name": quota.name,
                "parent": quota.parent,
                "min": None if quota.min is None else dict(quota.min),
                "max": None if quota.max is None else dict(quota.max),
                "namespaces": list(quota.namespaces),
            }
            for quota in cluster.elastic_quotas.values()
        ],
        "pod_groups": _fields(cluster.pod_groups.values(), "namespace", "name", "min_member"),
        "scheduling_groups": _fields(
            cluster.scheduling_groups.values(), "namespace", "workload", "name", "min_count"
        ),
        "custom_resources": {
            kind: {name: told(value) for name, value in found.items()}
            for kind, found in cluster.custom_resources.items()
        },
        **work_of(cluster),
        "plugin": None if cluster.scheduler is None else cluster.scheduler.plugin,
        "priority_classes": {item.name: item.value for item in cluster.priority_classes.values()},
        "global_default": cluster.default_class.name,
        "workload_priority_classes": {
            item.name: item.value for item in cluster.workload_priority_classes.values()
        },
        "default_priority": cluster.default_priority,
        "namespaces": sorted(cluster.namespaces),
        "warnings": list(cluster.warnings),
    }


def _fields(objects: Iterable[object], *names: str) -> list[dict[str, Any]]:
    """Returns some fields of each object."""
    return [{name: getattr(each, name) for name in names} for each in objects]


def _nominal(groups: Iterable[ResourceGroup]) -> dict[str, dict[str, int]]:
    return {
        quotas.flavor: {resource: quota.nominal for resource, quota in quotas.resources.items()}
        for group in groups
        for quotas in group.flavors
    }


def _report(content: Mapping[str, Any]) -> list[str]:
    from harness.cluster.node_kinds import amount_text

    nodes = content["nodes"]
    lines = [printable(f"{content['source']}: {_counts(content)}")]
    if content["plugin"] is not None:
        lines.append(f"the KubeSchedulerConfiguration selects the plugin {content['plugin']}")
    if content["kueue"] is not None:
        lines.append(printable(f"Kueue {content['kueue']['tag']} runs, as {content['kueue']['where']} says"))
    lines += [printable(f"Kueue counts: {sentence}") for sentence in content["counting"]]
    lines += _table(
        ("resource", f"total of {counted(nodes['count'], 'node')}"),
        [(resource, amount_text(resource, total)) for resource, total in sorted(nodes["total"].items())],
    )
    lines += slice_lines(content["mig"])
    owners = [("queue", item["cohort"], item) for item in content["cluster_queues"]]
    owners += [("cohort", item["parent"], item) for item in content["cohorts"]]
    columns = list(
        dict.fromkeys(name for _, _, item in owners for row in item["nominal"].values() for name in row)
    )
    rows = []
    for kind, parent, item in owners:
        for flavor, quotas in (item["nominal"] or {"": {}}).items():
            amounts = [amount_text(name, quotas[name]) if name in quotas else "" for name in columns]
            rows.append((kind, item["name"], parent, flavor, *amounts))
    lines += _table(("", "name", "cohort", "flavor", *columns), rows)
    lines += room_lines(content["flavor_nodes"])
    quotas = content["elastic_quotas"]
    resources = list(
        dict.fromkeys(name for item in quotas for bound in (item["min"], item["max"]) for name in bound or ())
    )
    rows = []
    for item in quotas:
        bounds = [(item[bound] or {}).get(name) for name in resources for bound in ("min", "max")]
        amounts = [
            "" if each is None else amount_text(resources[at // 2], each) for at, each in enumerate(bounds)
        ]
        rows.append((item["name"], item["parent"], *amounts))
    heads = [f"{bound} {name}" for name in resources for bound in ("min", "max")]
    lines += _table(("elastic quota", "parent", *heads), rows)
    for kind, resources in content["custom_resources"].items():
        columns = list(dict.fromkeys(field for fields in resources.values() for field in fields))
        rows = [(name, *(fields.get(field, "") for field in columns)) for name, fields in resources.items()]
        lines += _table((kind, *columns), rows)
    for head, found in work_tables(content):
        lines += _table(head, found)
    classes = []
    for kind, key in (
        ("PriorityClass", "priority_classes"),
        ("WorkloadPriorityClass", "workload_priority_classes"),
    ):
        for name, value in content[key].items():
            default = kind == "PriorityClass" and name == content["global_default"]
            classes.append((kind, name, f"{value:,}" + (" (global default)" if default else "")))
    lines += _table(("class", "name", "value"), classes)
    return lines


def _counts(content: Mapping[str, Any]) -> str:
    counts = [("node", content["nodes"]["count"])]
    counts += [
        (what, len(content[key]))
        for what, key in (
            ("flavor", "flavors"),
            ("cluster queue", "cluster_queues"),
            ("cohort", "cohorts"),
            ("local queue", "local_queues"),
            ("elastic quota", "elastic_quotas"),
            ("pod group", "pod_groups"),
            ("scheduling group", "scheduling_groups"),
            ("namespace", "namespaces"),
            ("Workload", "workloads"),
            ("Pod", "pods"),
            ("disruption budget", "disruption_budgets"),
        )
    ]
    counts += [(kind.partition(".")[0], len(found)) for kind, found in content["custom_resources"].items()]
    shown = [counted(count, what) for what, count in counts if count]
    return ", ".join(shown) or "no nodes and no queues"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return []
    return ["", *aligned([head, *rows], left=range(len(head)), width=terminal_width()).split("\n")]
