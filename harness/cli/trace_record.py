"""`harness trace record` records the changes of the jobs in a cluster."""

from __future__ import annotations

from contextlib import closing
from math import inf
from pathlib import Path
from time import monotonic

import click

from harness.base.errors import OptionError
from harness.base.text import counted, printable
from harness.base.units import SECOND, parse_duration
from harness.cli.screen import tell


@click.command(
    epilog="""\b
Examples:
  harness trace record march
  harness trace record march --server http://127.0.0.1:8001 --for 1h"""
)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path), metavar="FILE",
    help="The kubeconfig to use. [default: KUBECONFIG, ~/.kube/config, or the pod's service account]",
)  # fmt: skip
@click.option("--context", metavar="NAME", help="Context of the kubeconfig. [default: its current context]")
@click.option(
    "--server", metavar="URL", help="Address of the API server or of kubectl proxy, instead of a kubeconfig."
)
@click.option(
    "--token-file", type=click.Path(path_type=Path), metavar="FILE",
    help="With --server: a file that holds a bearer token.",
)  # fmt: skip
@click.option("-n", "--namespace", metavar="NAME", help="Record only this namespace. [default: all]")
@click.option(
    "--every", default="30s", show_default=True, metavar="SPAN", help="Interval between writes to FOLDER."
)
@click.option("--for", "lasts", metavar="SPAN", help="Stop after this time. [default: on ctrl-C]")
def record(
    folder: Path,
    kubeconfig: Path | None,
    context: str | None,
    server: str | None,
    token_file: Path | None,
    namespace: str | None,
    every: str,
    lasts: str | None,
) -> None:
    """Record the changes of Workloads, Jobs and Pods of a cluster, including objects that are later deleted.

    The command also records quotas and nodes, if the cluster permits it to read them; `harness cluster
    events` makes a table of their changes. It only reads from the cluster. After a restart, the recording
    continues in the same folder. `harness trace convert FOLDER OUT.parquet` makes a trace from FOLDER at any
    time.
    """
    from harness.readers.live.cluster import connect, kinds_of
    from harness.readers.live.folder import recording_folder
    from harness.readers.live.record import Recorder
    from harness.readers.live.record import record as record_into

    if server is not None and (kubeconfig or context):
        raise OptionError("--server needs no kubeconfig", hint="leave --kubeconfig and --context out")
    if token_file is not None and server is None:
        raise OptionError("--token-file requires --server", hint="a kubeconfig has its own token")
    pause = _seconds("--every", every)
    end = inf if lasts is None else monotonic() + _seconds("--for", lasts)
    found = connect(kubeconfig, context, server, token_file)
    with closing(found.http):
        kinds, notes = kinds_of(found, namespace)
        for note in notes:
            tell(f"note: {note}")
        with recording_folder(folder, {"server": found.address, "namespace": namespace}) as opened:
            recorder = Recorder(opened, tell)
            names = ", ".join(f"{kind.plural} ({kind.api})" for kind in kinds)
            tell(f"recording {names} of {namespace or 'all namespaces'} into {folder}; ctrl-C ends it")
            record_into(found, kinds, namespace, recorder, every=pause, enough=lambda: monotonic() > end)
    click.echo(printable(f"{folder}: {counted(recorder.seen, 'version')} of objects recorded"))


def _seconds(option: str, text: str) -> float:
    span = parse_duration(text)
    if span <= 0:
        raise OptionError(f"{option}: must be longer than 0, not {text}")
    return span / SECOND
