"""`harness trace record`: who asks, what is said where that does not work, and that no secret gets out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from errno import ENOSPC
from math import inf
from pathlib import Path

import pytest
import yaml
from cli_environment import LONG, called, clean_environment
from fake_api import TOKEN, FakeApi
from watched_cluster import HOUR, SECRET, WatchedCluster, told

pytest.importorskip("lightkube", reason="recording needs lightkube: pip install 'harness-replay[live]'")

from harness.cli import trace_record
from harness.plugins import load
from harness.readers.live import cluster as live_cluster
from harness.readers.live.folder import Folder, recording_folder
from harness.readers.recordings import parts_of, read_rows
from harness.trace.trace import open_trace


@pytest.fixture
def api(serve: Callable[..., FakeApi], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeApi:
    """A server in the middle of an hour; nobody is configured to ask it."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(live_cluster, "_IN_CLUSTER", tmp_path / "no-account")
    server = serve(WatchedCluster.of(0))
    server.now = HOUR // 2
    return server


@pytest.fixture
def run(
    api: FakeApi,
    token_file: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable:
    """Records until there is nothing new; answers the exit code and all that was printed, without secrets."""
    begun = time.monotonic()

    def clock() -> float:
        """So late that it is over, as soon as all is in the folder."""
        about = tmp_path / "rec" / "recording.json"
        positions = json.loads(about.read_text())["positions"] if about.exists() else {}
        up_to_date = [each for each in positions.values() if each == str(api.revision)]
        over = len(up_to_date) == len(api.kinds) or time.monotonic() > begun + LONG
        return inf if over and api.watched(len(up_to_date)) else 0.0

    monkeypatch.setattr(trace_record, "monotonic", clock)

    def record(*options: object, server: bool = True) -> tuple[int, str]:
        who = ["--server", api.url, "--token-file", str(token_file)] if server else []
        words = ["trace", "record", str(tmp_path / "rec"), "--for", "1s", "--every", "10ms", *who]
        api.break_off()  # nobody is said to watch
        code = called([*words, *map(str, options)])
        out, err = capfd.readouterr()
        assert TOKEN not in out + err
        assert SECRET not in out + err
        return code, out + err

    return record


def kubeconfig(path: Path, server: str, **user: object) -> Path:
    """A kubeconfig of two clusters, of which the second one is there."""
    contexts = [{"name": name, "context": {"cluster": name, "user": "u"}} for name in ("other", "here")]
    clusters = [
        {"name": "other", "cluster": {"server": "http://127.0.0.1:9"}},
        {"name": "here", "cluster": {"server": server}},
    ]
    content = {"current-context": "other", "contexts": contexts, "clusters": clusters}
    path.write_text(json.dumps({**content, "users": [{"name": "u", "user": user}]}))
    return path


def test_a_recording_is_a_trace(run: Callable, api: FakeApi, tmp_path: Path) -> None:
    """Also while it goes on; it can be converted, checked and replayed like a file."""
    code, said = run()
    assert code == 0
    assert (
        "recording workloads (kueue.x-k8s.io/v1beta2), jobs (batch/v1), pods (v1) of all namespaces" in said
    )
    rows = list(read_rows(tmp_path / "rec"))
    assert f"{len(rows)} versions of objects recorded" in said
    assert len(rows) == sum(len(api.there(kind)) for kind in ("Workload", "Job", "Pod"))
    made = tmp_path / "made.parquet"
    assert called(["trace", "convert", str(tmp_path / "rec"), str(made)]) == 0
    trace = open_trace(made, load(only=["readers"]))
    found = {(job.name.partition("#")[0], job.submit) for job in told(trace.frame)}
    assert found
    assert found < {(job.name.partition("#")[0], job.submit) for job in api.cluster.jobs}
    assert set(api.methods) == {"GET"}


def test_it_goes_on_where_it_was(run: Callable, api: FakeApi, tmp_path: Path) -> None:
    """What is known already is not recorded again, and what happened meanwhile is."""
    assert run()[0] == 0
    before = len(list(read_rows(tmp_path / "rec")))
    assert "0 versions of objects recorded" in run()[1]
    api.advance(600)
    assert run()[0] == 0
    later = list(read_rows(tmp_path / "rec"))[before:]
    new = [change for change in api.cluster.changes if HOUR // 2 < change.at <= HOUR // 2 + 600]
    assert sorted(row.content["metadata"]["resourceVersion"] for row in later) == sorted(
        str(change.revision) for change in new
    )


def test_a_kubeconfig_says_who_asks_whom(run: Callable, api: FakeApi, tmp_path: Path) -> None:
    """By its context; one without credentials is refused."""
    path = kubeconfig(tmp_path / "config", api.url, token=TOKEN)
    assert run("--kubeconfig", path, "--context", "here", server=False)[0] == 0
    code, said = run("--kubeconfig", path, server=False)
    assert code == 2
    assert "http://127.0.0.1:9: it does not accept connections" in said
    empty = kubeconfig(tmp_path / "empty", api.url)
    code, said = run("--kubeconfig", empty, "--context", "here", server=False)
    assert code == 2
    assert "the API group kueue.x-k8s.io cannot be read: the server answers 401: Unauthorized" in said
    assert "kubectl proxy" in said


def test_the_kubeconfig_of_the_environment_is_taken(
    run: Callable, api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file; of several it is said how they become one."""
    path = kubeconfig(tmp_path / "config", api.url, token=TOKEN)
    monkeypatch.setenv("KUBECONFIG", str(path))
    assert run("--context", "here", server=False)[0] == 0
    monkeypatch.setenv("KUBECONFIG", f"{path}{os.pathsep}{path}")
    code, said = run("--context", "here", server=False)
    assert code == 2
    assert "KUBECONFIG names several files" in said


def test_a_kubeconfig_that_is_none_is_named(run: Callable, tmp_path: Path) -> None:
    """Without what it says: there may be tokens in it."""
    code, said = run(server=False)
    assert code == 2
    assert "there is no kubeconfig: neither --kubeconfig nor KUBECONFIG" in said
    path = tmp_path / "broken"
    for text in (f"users: [{{token: {TOKEN}", f"token: {TOKEN}", "[]", '{"clusters": [{"name": "x"}]}'):
        path.write_text(text)
        code, said = run("--kubeconfig", path, server=False)
        assert code == 2, said
        assert f"{path} cannot be used to reach a cluster" in said
        assert "Traceback" not in said
    assert "there is no kubeconfig nowhere" in run("--kubeconfig", "nowhere", server=False)[1]


def test_a_program_that_fails_to_give_a_token_is_not_quoted(
    run: Callable, api: FakeApi, tmp_path: Path
) -> None:
    """Neither is what it printed; kubectl can be asked instead."""
    command = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": sys.executable}
    path = kubeconfig(
        tmp_path / "config", api.url, exec={**command, "args": ["-c", f"import sys; sys.exit('{TOKEN}')"]}
    )
    code, said = run("--kubeconfig", path, "--context", "here", server=False)
    assert code == 2
    assert "no credentials for" in said
    assert "kubectl proxy" in said


def test_what_is_forbidden_is_said_with_what_is_needed(run: Callable, api: FakeApi) -> None:
    """Before anything is recorded."""
    api.status = 403
    code, said = run()
    assert code == 2
    assert "cannot be read: the server answers 403: jobs.batch is forbidden" in said
    assert "docs/recording.md shows the required role" in said


def test_a_cluster_without_kueue_is_recorded_without_workloads(
    serve: Callable[..., FakeApi], run: Callable, api: FakeApi, token_file: Path, tmp_path: Path
) -> None:
    """And it is said."""
    api.kueue = False
    code, said = run()
    assert code == 0
    assert "note: the cluster has no kueue.x-k8s.io: Kueue is not installed" in said
    assert {row.kind for row in read_rows(tmp_path / "rec")} == {"Job", "Pod"}


def test_a_folder_is_of_one_cluster_and_one_recorder(run: Callable, api: FakeApi, tmp_path: Path) -> None:
    """Anything else would be taken for gone."""
    assert run()[0] == 0
    code, said = run("--namespace", "team")
    assert code == 2
    assert "is a recording of namespace (all), not team" in said
    with recording_folder(tmp_path / "rec", {"server": api.url, "namespace": None}):
        assert "another process already records into" in run()[1]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("x")
    code = called(
        ["trace", "record", str(tmp_path / "other"), "--server", api.url, "--token-file", os.devnull]
    )
    assert code == 2
    assert (tmp_path / "other" / "thesis.tex").read_text() == "x"


def test_one_namespace_is_recorded_by_itself(run: Callable, tmp_path: Path) -> None:
    """For who may not see the others."""
    assert run("--namespace", "team")[0] == 0
    assert {row.namespace for row in read_rows(tmp_path / "rec")} == {"team"}


def test_a_full_disk_ends_it_and_nothing_is_lost(
    run: Callable, api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What could not be written is asked for again."""
    assert run()[0] == 0
    before = len(list(read_rows(tmp_path / "rec")))
    api.advance(300)

    def full(*_: object) -> None:
        raise OSError(ENOSPC, os.strerror(ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "_write", full)
        code, said = run()
    assert code == 2
    assert "No space left on device" in said
    assert "nothing recorded so far is lost" in said
    assert run()[0] == 0
    new = [change for change in api.cluster.changes if HOUR // 2 < change.at <= HOUR // 2 + 300]
    assert len(list(read_rows(tmp_path / "rec"))) == before + len(new)


def test_a_gap_is_told_and_what_was_gone_counted(run: Callable, api: FakeApi, tmp_path: Path) -> None:
    """Where the server no longer knows what happened."""
    assert run()[0] == 0
    api.away(900)
    assert "the server no longer has all events since" in run()[1]
    trace = open_trace(tmp_path / "rec", load(only=["readers"]))
    assert any("whose events the server had lost" in note for note in trace.notes)
    assert trace.frame["job_id"].n_unique() == trace.frame.height
    unseen = trace.left_out.get("that were deleted while they ran, at an unknown time", 0)
    assert unseen + sum(trace.left_out.values()) > 0


def test_many_parts_are_put_together(tmp_path: Path) -> None:
    """In their order; what a larger part has is not read twice, also if the small ones are still there."""
    with recording_folder(tmp_path / "rec", {"server": "s", "namespace": None}) as folder:
        for number in range(70):
            metadata = {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": str(number)}
            row = {"seen": number, "event": "MODIFIED", "api_version": "v1", "kind": "Pod"}
            names = {"namespace": "n", "name": "p", "uid": "u", "resource_version": str(number)}
            folder.add(
                [{**row, **names, "object": json.dumps({"metadata": metadata})}], {"Pod": str(number)}, 0
            )
            if number == 20:
                small = parts_of(tmp_path / "rec")[3].path
                kept = small.read_bytes()
    assert [part.path.name for part in parts_of(tmp_path / "rec")][:2] == [
        "00000001-00000064.parquet",
        "00000065-00000065.parquet",
    ]
    small.write_bytes(kept)
    assert [row.seen for row in read_rows(tmp_path / "rec")] == list(range(70))
    with recording_folder(tmp_path / "rec", {"server": "s", "namespace": None}) as folder:
        assert not small.exists()
        assert folder.positions == {"Pod": "69"}


def test_a_damaged_part_is_named(run: Callable, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """And no trace is made of the rest."""
    assert run()[0] == 0
    part = parts_of(tmp_path / "rec")[0].path
    part.write_bytes(part.read_bytes()[:100])
    assert called(["trace", "check", str(tmp_path / "rec")]) == 2
    assert f"{part.name}: is not a part of a recording, or is damaged" in capfd.readouterr().err


def test_without_the_extra_it_says_which_to_install(run: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """And does nothing else."""
    monkeypatch.setitem(sys.modules, "lightkube.config.kubeconfig", None)
    code, said = run()
    assert code == 2
    assert "querying a server requires lightkube, which is not installed" in said
    assert "pip install 'harness-replay[live]'" in said


@pytest.mark.slow
def test_a_recorder_that_is_told_to_end_ends_well(api: FakeApi, token_file: Path, tmp_path: Path) -> None:
    """As a Deployment does it, with SIGTERM; killed, it goes on where it was."""
    words = ["harness", "trace", "record", "rec", "--server", api.url, "--token-file", str(token_file)]
    for number in (signal.SIGKILL, signal.SIGTERM):
        api.break_off()  # nobody is said to watch
        process = subprocess.Popen(
            [*words, "--every", "100ms"],
            cwd=tmp_path,
            env=clean_environment(),
            stderr=subprocess.PIPE,
            text=True,
        )
        with process, process.stderr as said:  # type: ignore[union-attr]
            assert "ctrl-C ends it" in said.readline()
            assert api.watched(timeout=LONG)
            process.send_signal(number)
            assert process.wait(LONG) == (0 if number == signal.SIGTERM else -signal.SIGKILL)
    rows = [(row.kind, row.uid) for row in read_rows(tmp_path / "rec")]
    assert len(rows) == len(set(rows))


def test_the_manifest_gives_it_no_more_than_it_needs() -> None:
    """Reading only, not as root, nothing writable but its claim, and never two at once."""
    path = Path(__file__).parents[2] / "docs" / "examples" / "recorder.yaml"
    found = {each["kind"]: each for each in yaml.safe_load_all(path.read_text(encoding="utf-8"))}
    given = found["ClusterRole"]["rules"]
    rules = {(each["apiGroups"][0], plural): each["verbs"] for each in given for plural in each["resources"]}
    of_kueue = (live_cluster.Kind("Workload", "", "workloads"), *live_cluster._OF_KUEUE)
    kinds = [each._replace(api="kueue.x-k8s.io/v1beta2") for each in of_kueue]
    kinds += [live_cluster._JOBS, live_cluster._PODS, *live_cluster._STANDING]
    assert rules == {(kind.api.rpartition("/")[0], kind.plural): ["list", "watch"] for kind in kinds}
    assert all(set(each) == {"apiGroups", "resources", "verbs"} for each in given)
    binding = found["ClusterRoleBinding"]
    account = found["ServiceAccount"]["metadata"]
    assert binding["roleRef"]["name"] == found["ClusterRole"]["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", **account}]
    deployment = found["Deployment"]["spec"]
    assert (deployment["replicas"], deployment["strategy"]["type"]) == (1, "Recreate")
    pod = deployment["template"]["spec"]
    assert pod["serviceAccountName"] == account["name"]
    assert pod["securityContext"]["runAsNonRoot"]
    (container,) = pod["containers"]
    assert container["args"][:2] == ["trace", "record"]
    security = container["securityContext"]
    assert security["readOnlyRootFilesystem"]
    assert security["allowPrivilegeEscalation"] is False
    assert security["capabilities"] == {"drop": ["ALL"]}
    claimed = {each["name"]: each for each in pod["volumes"]}
    mounted = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    claim = claimed["data"]["persistentVolumeClaim"]["claimName"]
    assert claim == found["PersistentVolumeClaim"]["metadata"]["name"]
    assert container["args"][2].startswith(mounted["data"] + "/")
