"""Tables of events: what rows come to, when they hold, and what is said of wrong ones."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from harness.base.errors import ClusterError, HarnessError
from harness.base.units import DAY, HOUR, SECOND
from harness.cluster.changes.event_nodes import ACTIONS, CORDONED
from harness.cluster.changes.event_table import COLUMNS
from harness.cluster.changes.over_time import unrolled
from harness.cluster.load import cluster_from
from harness.cluster.model import Cluster
from harness.studies.experiments.preparation import _patch

MANIFESTS: list[dict[str, Any]] = [
    {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "any"}},
    *(
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": {
                "cohortName": "all",
                "namespaceSelector": {},
                "resourceGroups": [
                    {
                        "coveredResources": ["cpu", "gpu"],
                        "flavors": [
                            {
                                "name": "any",
                                "resources": [
                                    {"name": "cpu", "nominalQuota": 8},
                                    {"name": "gpu", "nominalQuota": 2, "borrowingLimit": 1},
                                ],
                            }
                        ],
                    }
                ],
            },
        }
        for name in ("a", "b")
    ),
    {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "door", "namespace": "team"},
        "spec": {"clusterQueue": "a"},
    },
    {
        "apiVersion": "harness/v1",
        "kind": "NodePool",
        "metadata": {"name": "pool"},
        "spec": {
            "count": 3,
            "template": {"metadata": {"labels": {"zone": "x"}}, "status": {"capacity": {"cpu": 8, "gpu": 2}}},
        },
    },
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "single", "labels": {"zone": "y"}},
        "status": {"allocatable": {"cpu": 4}},
    },
]


def base() -> Cluster:
    """Two queues of a cohort, a pool of three nodes and a node."""
    return cluster_from(MANIFESTS, "the test")


def rows(*lines: str) -> list[dict[str, str]]:
    """Rows of a table in memory, each with | between its cells."""
    return [dict(zip(COLUMNS, line.split("|"), strict=True)) for line in lines]


def edits(*lines: str) -> list[tuple[int, str, Any]]:
    """After how many seconds which object changes, and what it is then."""
    cluster = unrolled(base().patched(rows(*lines)), None)
    return [
        (instant.at // SECOND, str(edit), edit.after) for instant in cluster.changes for edit in instant.edits
    ]


def gpus(*lines: str) -> list[tuple[int, int]]:
    """After how many hours the nominal quota of GPUs of queue `a` changes, and to how many."""
    return [
        (at // 3600, after.resource_groups[0].flavors[0].resources["gpu"].nominal)
        for at, _, after in edits(*lines)
    ]


def over(kind: str, name: str, begin: str, end: str, **content: Any) -> dict[str, Any]:
    """A patch with a time."""
    annotations = {"harness/from": begin, "harness/until": end}
    return {"kind": kind, "metadata": {"name": name, "annotations": annotations}, **content}


def test_a_row_is_the_patch_that_says_the_same() -> None:
    """So that there is one way in which a cluster changes."""
    table = rows(
        "1h|3h|ClusterQueue|a|quota[gpu]|1",
        "2h|4h|ClusterQueue|b|stopPolicy|Hold",
        "2h|5h|Node|pool-1|remove|",
    )
    quota = {"flavors": [{"name": "any", "resources": [{"name": "gpu", "nominalQuota": 1}]}]}
    patches = [
        over("ClusterQueue", "a", "1h", "3h", spec={"resourceGroups": [quota]}),
        over("ClusterQueue", "b", "2h", "4h", spec={"stopPolicy": "Hold"}),
        over("Node", "pool-1", "2h", "5h", **{"$patch": "delete"}),
    ]
    made, wanted = (unrolled(base().patched(each), None) for each in (table, patches))
    assert made.digest == wanted.digest
    assert len(made.changes) == 5


def test_files_of_equal_content_make_the_same_cluster(tmp_path: Path) -> None:
    """Whatever they are called, and whether times are texts, durations or dates of a Parquet file."""
    text = "time,until,kind,name,field,value\n1h,1d,ClusterQueue,a,quota[gpu],1\n"
    (tmp_path / "one.csv").write_text(text)
    (tmp_path / "other.csv.gz").write_bytes(gzip.compress(b"\xef\xbb\xbf" + text.encode() + b"\n"))
    row = {"time": [timedelta(hours=1)], "until": [timedelta(days=1)], "kind": ["ClusterQueue"]}
    row |= {"name": ["a"], "field": ["quota[gpu]"], "value": [1]}
    pl.DataFrame(row).write_parquet(tmp_path / "table.parquet")
    files = ("one.csv", "other.csv.gz", "table.parquet")
    digests = {base().patched(tmp_path / name).digest for name in files}
    assert len(digests) == 1
    begin = datetime(2025, 1, 1, tzinfo=UTC)
    dates = {"time": [begin + timedelta(hours=1)], "until": [begin + timedelta(days=1)]}
    pl.DataFrame(row | dates).write_parquet(tmp_path / "dates.parquet")
    dated = unrolled(base().patched(tmp_path / "dates.parquet"), int(begin.timestamp()) * SECOND)
    assert dated.digest == unrolled(base().patched(tmp_path / "one.csv"), None).digest


def test_a_sweep_takes_a_table_as_a_patch(tmp_path: Path) -> None:
    """Its points have the rows, so that the table is part of what they are."""
    table = tmp_path / "cut.csv"
    table.write_text("time,kind,name,field,value\n1h,ClusterQueue,a,quota[gpu],1\n")
    found = _patch(table)
    assert found == rows("1h||ClusterQueue|a|quota[gpu]|1")
    assert base().patched(found).digest == base().patched(table).digest


def test_a_row_without_an_end_holds_until_the_next_one_of_its_field() -> None:
    """A table is a log, in whatever order its rows are."""
    later, sooner = ("5h||ClusterQueue|a|quota[gpu]|2", "1h||ClusterQueue|a|quota[gpu]|1")
    assert gpus(later, sooner) == gpus(sooner, later) == [(1, 1), (5, 2)]


def test_a_row_with_an_end_is_an_exception_after_which_what_was_before_is_so_again() -> None:
    """Also where it begins together with what it is an exception from."""
    step = "1h||ClusterQueue|a|quota[gpu]|4"
    assert gpus(step, "2h|3h|ClusterQueue|a|quota[gpu]|1") == [(1, 4), (2, 1), (3, 4)]
    assert gpus("1h|3h|ClusterQueue|a|quota[gpu]|1", step) == [(1, 1), (3, 4)]


@pytest.mark.parametrize(
    ("field", "value", "wanted"),
    [
        ("quota[gpu]", "x0.5", 1),
        ("quota[any/gpu]", "5", 5),
        ("borrowingLimit[gpu]", "", None),
        ("cohortName", "other", "other"),
        ("weight", "3", 3),
        ("preemption.reclaimWithinCohort", "Any", "Any"),
    ],
)
def test_a_field_is_a_knob_or_stands_in_the_spec(field: str, value: str, wanted: object) -> None:
    """A value may be so many times what the manifests say; an empty one takes a limit away."""
    ((_, _, queue),) = edits(f"1h||ClusterQueue|a|{field}|{value}")
    quota = queue.resource_groups[0].flavors[0].resources["gpu"]
    found = {
        "quota": quota.nominal,
        "borrowingLimit": quota.borrowing_limit,
        "cohortName": queue.cohort,
        "weight": queue.weight,
        "preemption.reclaimWithinCohort": queue.preemption.reclaim_within_cohort,
    }
    assert found[field.partition("[")[0]] == wanted


def test_a_name_with_a_star_names_several_objects() -> None:
    """Each of them changes by itself."""
    found = edits("1h||ClusterQueue|*|quota[gpu]|1", "2h||LocalQueue|team/*|stopPolicy|Hold")
    assert [name for _, name, _ in found] == ["ClusterQueue a", "ClusterQueue b", "LocalQueue team/door"]


def test_a_queue_is_removed_and_comes_back() -> None:
    """As a patch that deletes it for a while."""
    gone, back = edits("1h|2h|ClusterQueue|b|remove|")
    assert (gone[0], gone[2], back[2]) == (3600, None, base().cluster_queues["b"])


def test_a_cordon_is_followed_by_the_taint_of_the_node_controller_a_second_later() -> None:
    """And so is its end."""
    found = edits("1h|2h|Node|single|cordon|")
    assert [(at, node.unschedulable, [taint.key for taint in node.taints]) for at, _, node in found] == [
        (3600, True, []),
        (3601, True, [CORDONED]),
        (7200, False, [CORDONED]),
        (7201, False, []),
    ]


def test_a_taint_is_written_as_kubectl_takes_it() -> None:
    """With a value or without."""
    found = edits("1h|2h|Node|single|taint|broken=disk:NoExecute", "1h||Node|single|taint|old:NoSchedule")
    assert [(taint.key, taint.value, taint.effect) for taint in found[0][2].taints] == [
        ("old", "", "NoSchedule"),
        ("broken", "disk", "NoExecute"),
    ]
    assert [taint.key for taint in found[1][2].taints] == ["old"]


def test_a_resize_changes_some_resources_and_leaves_the_others() -> None:
    """Also of nodes that say only what their capacity is."""
    (found,) = edits("1h||Node|pool-0|resize|gpu=1")
    assert dict(found[2].allocatable) == {"cpu": 8000, "gpu": 1}
    (found,) = edits("1h||Node|single|resize|cpu=2;gpu=1")
    assert dict(found[2].allocatable) == {"cpu": 2000, "gpu": 1}


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("single", ["single"]),
        ("pool-*", ["pool-0", "pool-1", "pool-2"]),
        ("zone=x", ["pool-0", "pool-1", "pool-2"]),
        ("zone=x,kubernetes.io/hostname!=pool-1", ["pool-0", "pool-2"]),
        ("pool:2", ["pool-1", "pool-2"]),
    ],
)
def test_nodes_are_named_by_name_labels_or_as_a_number_of_a_pool(name: str, wanted: list[str]) -> None:
    """Of a pool they are the last ones, which a smaller pool would not have."""
    found = edits(f"1h||Node|{name}|remove|")
    assert [what.removeprefix("Node ") for _, what, _ in found] == wanted


def test_dates_are_times_since_the_origin_of_the_trace() -> None:
    """As in patches."""
    table = rows("2025-01-02T00:00:00Z|2025-01-03|ClusterQueue|a|quota[gpu]|1")
    origin = int(datetime(2025, 1, 1, tzinfo=UTC).timestamp()) * SECOND
    assert [instant.at for instant in unrolled(base().patched(table), origin).changes] == [DAY, 2 * DAY]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("1h||Pod|a|quota|1", "column kind: 'Pod' cannot change over time"),
        ("1h||ClusterQueue|aa|stopPolicy|Hold", "row 1, column name: there is no ClusterQueue 'aa'; did"),
        ("1h||ClusterQueue|a|quota[gpus]|1", r"column field: .*no quota for 'gpus'; did you mean 'gpu'"),
        ("1h||ClusterQueue|a|quota[gpu]|-1", "row 1, column value: .* -1 is below 0"),
        ("1h||ClusterQueue|a|quota[gpu]|", "row 1, column value: .* cannot be removed"),
        ("1h||ClusterQueue|a|stop|Hold", "row 1, ClusterQueue a: spec.stop: ClusterQueue has no field stop"),
        ("1h||ClusterQueue|a|sto p|Hold", "row 1, column field: 'sto p' is not a field"),
        ("1h||ClusterQueue|a|stopPolicy|Hodl", "ClusterQueue a: spec.stopPolicy: 'Hodl' is not one of"),
        ("1h||ClusterQueue|a|remove|x", "row 1, column value: must be empty"),
        ("soon||ClusterQueue|a|weight|1", "time: 'soon' is not a time; write a date such as 2025-01-31T"),
        ("2h|1h|ClusterQueue|a|weight|1", "row 1, column until: must be later than the row's time"),
        ("||ClusterQueue|a|weight|1", "row 1, column time: is empty"),
        ("2h|2025-01-01|ClusterQueue|a|weight|1", "is a date, but the time of the first row counts"),
        ("9999-12-31T23:59:59Z||Node|single|cordon|", "row 1, column time: is later than the year 9000"),
        ("1h||Node|singel|remove|", "row 1, column name: there is no Node 'singel'; did you mean 'single'"),
        ("1h||Node|zone=z|remove|", "row 1, column name: no node has labels that match 'zone=z'"),
        ("1h||Node|zone=|remove|", "row 1, column name: no node has labels"),
        ("1h||Node|a=b,!c|remove|", "row 1, column name: '!c' is not valid in a selector"),
        ("1h||Node|pol:1|remove|", "row 1, column name: there is no NodePool 'pol'; did you mean 'pool'"),
        ("1h||Node|pool:4|remove|", "row 1, column name: '4' is not a valid number of nodes: pool has 3"),
        ("1h||Node|single|explode|", "row 1, column field: 'explode' is not an action on nodes"),
        ("1h||Node|single|taint|broken", "row 1, column value: 'broken' is not a taint"),
        ("1h||Node|single|taint|a:No", "row 1, column value: No is not the effect of a taint"),
        ("1h||Node|single|resize|7", "row 1, column value: '7' is not a resource"),
        ("1h||Node|single|resize|gpus=1", "row 1, column value: no node has 'gpus'; did you mean 'gpu'"),
        ("1h||Node|single|resize|cpu=x", "row 1, column value: 'x' is not a quantity"),
        ("1h||Node|single|cordon|now", "row 1, column value: must be empty, because cordon takes no value"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_row_is_said_with_its_column(row: str, said: str) -> None:
    """Before anything is replayed."""
    with pytest.raises(HarnessError, match=said):
        base().patched(rows(row))


@pytest.mark.parametrize(
    "table",
    [
        ["1h|3h|ClusterQueue|a|weight|1", "2h|4h|ClusterQueue|*|weight|2"],
        ["1h|3h|ClusterQueue|a|weight|1", "2h||ClusterQueue|a|fairSharing.weight|2"],
        ["1h||ClusterQueue|a|weight|1", "1h||ClusterQueue|a|weight|2"],
        ["1h|3h|Node|zone=x|remove|", "2h|5h|Node|pool:1|remove|"],
        ["1h|3h|Node|single|cordon|", "2h|5h|Node|single|cordon|"],
    ],
)  # fmt: skip
def test_rows_that_say_something_of_one_field_at_one_time_are_refused(table: list[str]) -> None:
    """However they name the object and the field."""
    with pytest.raises(ClusterError, match="row 2, column time: row 1 sets the same field"):
        base().patched(rows(*table))


def test_rows_of_other_fields_may_overlap() -> None:
    """A node is cordoned before it is removed."""
    found = edits("1h|4h|Node|single|cordon|", "2h|3h|Node|single|remove|")
    assert [(at, node is None) for at, _, node in found if at % 3600 == 0] == [
        (3600, False),
        (7200, True),
        (10800, False),
        (14400, False),
    ]


def test_a_log_of_many_rows_leaves_one_patch_an_object_at_a_time() -> None:
    """A row ends where the next one of its field begins: merging all before it would take ever longer."""
    cluster = base().patched(rows(*(f"{hour}h||ClusterQueue|a|quota[gpu]|{hour}" for hour in range(1, 50))))
    ends = [each["metadata"]["annotations"].get("harness/until") for each in cluster.timed]
    assert ends == [*(f"{hour * HOUR}us" for hour in range(2, 50)), None]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.csv", b"", "header: has no column time"),
        ("t.csv", b"time,kind,name,field,valeu\n", "there is no column 'valeu'; did you mean 'value'"),
        ("t.csv", b"time,time,kind,name,field\n", "has the column time twice"),
        (
            "t.csv",
            b"time,kind,name,field\n1h,Node,single\n",
            "row 1: has 3 cells, but the table has 4 columns",
        ),
        ("t.csv", b'time,kind,name,field\n1h,"Node\n', "line 2: is not CSV"),
        ("t.csv", b"time,kind,name,field\n\xff\n", "is not UTF-8 text"),
        ("t.csv.gz", b"\x1f\x8bnot", "t.csv.gz"),
        ("t.parquet", b"PAR1 but no more", "cannot be read as Parquet"),
        ("absent.csv", None, "cannot be read: No such file"),
        ("absent.parquet", None, "cannot be read as Parquet: "),
    ],
)
def test_a_file_that_is_no_table_is_refused_in_words(
    tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    """With what it lacks."""
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ClusterError, match=said):
        base().patched(tmp_path / name)


def test_a_log_in_which_nothing_changed_changes_nothing(tmp_path: Path) -> None:
    """`harness cluster events` writes a table without rows if nothing changed."""
    (tmp_path / "t.csv").write_text(",".join(COLUMNS) + "\n")
    assert base().patched(tmp_path / "t.csv").digest == base().digest


def test_the_page_of_nodes_names_all_that_can_happen_to_one() -> None:
    """So does its table of columns."""
    docs = Path(__file__).parents[2] / "docs"
    page = (docs / "nodes-over-time.md").read_text(encoding="utf-8")
    assert all(f"| `{action}` |" in page for action in ACTIONS)
    table = (docs / "events.md").read_text(encoding="utf-8")
    assert all(f"| `{column}` |" in table for column in COLUMNS)
