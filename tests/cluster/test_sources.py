"""Rules of what manifests are read from: several files, folders, gzip, standard input, lists in lists."""

from __future__ import annotations

import gzip
import json
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.base.errors import ClusterError, TraceError
from harness.cluster.load import cluster_from, load_cluster
from harness.cluster.yaml.sources import sources
from harness.plugins import load
from harness.runs.inputs import read_cluster, read_trace


def namespace(name: str) -> dict[str, Any]:
    """The smallest manifest."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def write(folder: Path, **files: str | bytes) -> None:
    """Files of a folder by their names, in which _ stands for the dot."""
    for name, content in files.items():
        path = folder / name.replace("_", ".")
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def fault_of(path: Path) -> str:
    """The only fault, with the source."""
    with pytest.raises(ClusterError) as caught:
        load_cluster(path)
    assert len(caught.value.faults) == 1
    return str(caught.value).partition("/here/")[2] or str(caught.value)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that paths are relative to."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def give(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """Standard input."""
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(content)))


def test_several_files_folders_and_standard_input_are_one_cluster(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order in which they are given; gzip is known by its first bytes, whatever a file is called."""
    (here / "folder").mkdir()
    write(here, a_yaml=json.dumps(namespace("a")), b=gzip.compress(json.dumps(namespace("b")).encode()))
    write(here / "folder", d_json=json.dumps(namespace("d")), e_yml_gz=gzip.compress(b"# nothing\n"))
    give(monkeypatch, json.dumps(namespace("c")).encode())
    cluster = load_cluster(Path("b,-,folder,a.yaml"))
    assert list(cluster.namespaces) == ["b", "c", "d", "a"]
    assert cluster.source == "b,-,folder,a.yaml"
    assert cluster.digest == cluster_from([namespace(name) for name in "bcda"], "n").digest
    assert load_cluster(Path("-")).digest == cluster_from([namespace("c")], "n").digest  # read once, kept


def test_a_path_that_is_there_is_one_whatever_its_name(here: Path) -> None:
    """Commas part only what is not there as a whole."""
    write(here, **{"a,b_yaml": json.dumps(namespace("whole"))})
    assert list(load_cluster(Path("a,b.yaml")).namespaces) == ["whole"]
    assert sources(Path("a.yaml, b.yaml")) == [Path("a.yaml"), Path("b.yaml")]
    for text in ("a.yaml,", ",a.yaml", "a,,b"):
        assert fault_of(Path(text)) == f"{text}: has an empty part before or after a comma"


def test_faults_of_several_files_name_the_file_the_document_and_the_line(here: Path) -> None:
    """All of them at once, also those between files."""
    (here / "folder").mkdir()
    write(here, a_yaml=json.dumps(namespace("a")) + "\n---\nx: [\n", b_json=json.dumps(namespace("a")))
    write(here / "folder", c_yaml="kind: 3")
    with pytest.raises(ClusterError) as caught:
        load_cluster(Path("a.yaml,b.json,folder"))
    broken, twice, unsaid = map(str, caught.value.faults)
    assert broken.startswith("a.yaml, document 2 (line 2), line 4: not valid YAML")
    assert twice == (
        "b.json, document 1 (line 1), Namespace a: is given twice; "
        "the first is in a.yaml, document 1 (line 1), Namespace a"
    )
    assert unsaid.startswith("folder/c.yaml, document 1 (line 1): must have 'kind' and 'apiVersion'")


def test_files_that_are_no_text_are_named(here: Path) -> None:
    """Cut off, far too large, binary or absent: one sentence with the file, and nothing fills the memory."""
    packed = gzip.compress(json.dumps([namespace(str(number)) for number in range(999)]).encode())
    write(here, ok_yaml=json.dumps(namespace("a")), cut_gz=packed[:-99], binary=bytes(range(256)))
    write(here, bomb_gz=gzip.compress(b"\n" * (1 << 20), mtime=0) * 100, zeros=bytes(99))
    assert "is not a whole gzip file" in fault_of(Path("ok.yaml,cut.gz"))
    assert "unpacks to more than 64 MiB" in fault_of(here / "bomb.gz")
    write(here, zip_yaml=b"PK\x03\x04" + bytes(99))
    assert fault_of(here / "zip.yaml").endswith("is a zip archive, which harness does not read")
    assert fault_of(here / "binary").endswith("is not UTF-8 text: byte 128 (line 2) is 0x80")
    assert "document 1 (line 1), line 1: not valid YAML" in fault_of(here / "zeros")
    assert fault_of(Path("ok.yaml,absent.yaml")) == "absent.yaml: cannot be read: No such file or directory"


@pytest.mark.parametrize("order", ["le", "be"])
def test_text_of_windows_shells_is_read(order: str, here: Path) -> None:
    """UTF-16 with a byte-order mark and Windows' line ends, as PowerShell redirects what kubectl prints."""
    text = "\ufeff" + json.dumps(namespace("a"), indent=1).replace("\n", "\r\n")
    write(here, a_yaml=text.encode(f"utf-16-{order}"), half=b"\xff\xfe\x00\xd8a\x00")
    assert list(load_cluster(here / "a.yaml").namespaces) == ["a"]
    assert "half: is not a whole UTF-16 file" in fault_of(here / "half")


def test_json_objects_one_after_the_other_are_documents(here: Path) -> None:
    """As several calls of kubectl in one file leave them, with or without `---`, also before YAML."""
    first, second = json.dumps(namespace("a"), indent=1), json.dumps(namespace("b"))
    lines = first.count("\n") + 1
    write(here, a=f'{first}{second}\n{{"kind": 3}}\n---\nkind: List\napiVersion: v1\nitems: []')
    assert f"document 3 (line {lines + 1}): must have 'kind'" in fault_of(here / "a")
    third = json.dumps(namespace("c"))
    write(here, a=f"{first}{second}\n...\n# end\n---\n{third}")
    assert list(load_cluster(here / "a").namespaces) == ["a", "b", "c"]
    write(here, a=f"{second}\n{{'kind\n")
    assert "document 2 (line 2), line" in fault_of(here / "a")
    write(here, a=f"{second}{first}kind: Node\n")
    assert fault_of(here / "a").endswith(
        f"document 3 (line {lines}): 'kind:' follows a JSON object; separate documents with a '---' line"
    )


def test_lists_in_lists_hold_objects_too() -> None:
    """Whoever joins two answers of kubectl in a list."""
    inner = {"apiVersion": "v1", "kind": "NamespaceList", "items": [{"metadata": {"name": "a"}}]}
    outer = {"apiVersion": "v1", "kind": "List", "items": [inner, namespace("b")]}
    assert list(cluster_from([outer], "n").namespaces) == ["a", "b"]


CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: kueue-manager-config, namespace: kueue-system}
data:
  controller_manager_config.yaml: |
    apiVersion: config.kueue.x-k8s.io/v1beta1
    kind: Configuration
    fairSharing:
      enable: true
      preemptionStrategies: [LessThanInitialShare]
"""


def test_kueues_config_map_is_its_configuration(here: Path) -> None:
    """A fault in it says where; another controller's text under the same name is no Configuration."""
    write(here, a=CONFIG_MAP)
    cluster = load_cluster(here / "a")
    assert cluster.kueue is not None
    assert cluster.kueue.strategies == ("LessThanInitialShare",)
    assert cluster.warnings == ()
    assert [item["kind"] for item in cluster.manifests] == ["Configuration"]
    write(here, a=CONFIG_MAP.replace("LessThanInitialShare", "Most"))
    told = (
        "document 1 (line 1), ConfigMap kueue-system/kueue-manager-config, controller_manager_config.yaml, "
    )
    assert told + "document 1 (line 1), Configuration: fairSharing" in fault_of(here / "a")
    write(here, a=CONFIG_MAP.replace("fairSharing:", "  fair: ]"))
    assert told + "document 1 (line 1), line 3: not valid YAML" in fault_of(here / "a")
    write(here, a=CONFIG_MAP.replace("config.kueue", "config.jobset"))
    assert load_cluster(here / "a").warnings == ("ConfigMap (v1): 1 object is not read",)


@pytest.mark.parametrize("key", ["config.yaml", "my-scheduler-config.yaml", "koord-scheduler-config"])
@pytest.mark.parametrize("as_json", [False, True])
def test_the_config_map_of_a_scheduler_is_its_configuration(here: Path, key: str, as_json: bool) -> None:
    """Whatever its key is. A text that only mentions the kind is none."""
    content = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    content["percentageOfNodesToScore"] = 30
    text = json.dumps(content) if as_json else yaml.safe_dump(content)
    found = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "s"},
        "data": {key: text, "o": "x"},
    }
    write(here, a=json.dumps(found))
    cluster = load_cluster(here / "a")
    assert cluster.scheduler is not None
    assert cluster.scheduler.percentage_of_nodes_to_score == 30
    assert cluster.warnings == ()
    found["data"] = {key: "# see kind: KubeSchedulerConfiguration\n"}
    write(here, a=json.dumps(found))
    assert load_cluster(here / "a").warnings == ("ConfigMap (v1): 1 object is not read",)


def test_a_trace_and_its_cluster_may_come_from_one_standard_input(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One answer of kubectl has both; the trace is called stdin."""
    times = {"startTime": "2026-01-01T00:00:10Z", "completionTime": "2026-01-01T00:00:30Z"}
    metadata = {"name": "j", "namespace": "team", "creationTimestamp": "2026-01-01T00:00:00Z"}
    template = {"spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    items = [job | {"status": times}, node | {"status": {"allocatable": {"cpu": "4"}}}]
    give(monkeypatch, json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode())
    trace = read_trace("-", load())
    assert (trace.path, trace.frame["job_id"].to_list()) == (Path("stdin"), ["team/j"])
    assert list(read_cluster("-", trace).nodes) == ["n"]
    give(monkeypatch, b"")
    with pytest.raises(TraceError, match=r"^stdin: is empty$"):
        read_trace("-", load())
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(TraceError, match=r"^stdin: cannot be read: there is no standard input$"):
        read_trace("-", load())
    with pytest.raises(ClusterError, match=r"^-: cannot be read: there is no standard input\n"):
        load_cluster(Path("-"))
