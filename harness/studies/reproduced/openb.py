"""Reproduces the share of openb's GPUs that FGD allocates if pods request 130 % of all GPUs.

The published figures are the means and standard deviations of ten seeds in the experiments with FGD
(hkust-adsl/kubernetes-scheduler-simulator 8f3d641,
`experiments/analysis/expected_results/analysis_allo_discrete.csv`).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory

import polars as pl

from harness.cluster.load import load_cluster
from harness.cluster.model import Cluster
from harness.plugins import load
from harness.runs.request import Request
from harness.studies.reproduced.case import Row, Source
from harness.trace.trace import open_trace

POLICIES = ("random", "dot-product", "clustering", "packing", "best-fit", "fgd")
SEEDS = tuple(range(42, 52))
PUBLISHED = {
    "cpu050": ((91.24, 0.21), (93.27, 0.19), (93.79, 0.32), (93.72, 0.30), (93.79, 0.14), (95.21, 0.09)),
    "cpu100": ((89.11, 0.29), (91.95, 0.27), (92.64, 0.44), (92.72, 0.46), (93.44, 0.13), (95.35, 0.14)),
    "cpu200": ((83.77, 0.34), (87.70, 0.62), (89.92, 0.39), (90.22, 0.50), (92.40, 0.24), (95.05, 0.16)),
    "cpu250": ((80.42, 0.29), (83.81, 0.46), (87.99, 0.58), (88.28, 0.65), (91.45, 0.22), (93.41, 0.28)),
    "default": ((87.47, 0.32), (90.85, 0.20), (91.88, 0.62), (92.00, 0.54), (93.08, 0.13), (95.39, 0.08)),
    "gpushare100": ((79.44, 0.13), (82.42, 0.31), (82.65, 0.48), (82.57, 0.49), (85.01, 0.20), (86.90, 0.15)),
    "gpushare40": ((86.00, 0.36), (89.56, 0.14), (90.02, 0.59), (90.03, 0.50), (91.69, 0.21), (94.15, 0.07)),
    "gpushare60": ((83.65, 0.29), (87.11, 0.28), (87.20, 0.42), (87.45, 0.38), (89.36, 0.19), (91.40, 0.12)),
    "gpushare80": ((81.22, 0.29), (84.49, 0.20), (84.85, 0.54), (85.00, 0.49), (87.01, 0.24), (89.30, 0.12)),
    "gpuspec10": ((87.43, 0.27), (90.39, 0.38), (92.18, 0.72), (92.46, 0.67), (93.30, 0.20), (94.95, 0.21)),
    "gpuspec20": ((87.24, 0.32), (89.97, 0.40), (92.25, 0.61), (92.94, 0.64), (93.30, 0.09), (94.84, 0.12)),
    "gpuspec25": ((86.94, 0.38), (89.63, 0.36), (92.08, 0.64), (92.98, 0.72), (93.23, 0.08), (94.74, 0.25)),
    "gpuspec33": ((86.46, 0.13), (89.14, 0.38), (92.12, 0.68), (93.22, 0.63), (93.09, 0.15), (94.55, 0.14)),
    "multigpu20": ((88.69, 0.48), (92.06, 0.32), (93.56, 0.61), (93.71, 0.64), (93.93, 0.23), (95.65, 0.16)),
    "multigpu30": ((89.27, 0.41), (93.28, 0.30), (94.72, 0.31), (94.87, 0.32), (94.72, 0.22), (96.46, 0.09)),
    "multigpu40": ((90.09, 0.44), (94.19, 0.21), (95.50, 0.31), (95.74, 0.30), (95.23, 0.24), (96.99, 0.09)),
    "multigpu50": ((90.27, 0.44), (94.85, 0.21), (95.81, 0.29), (96.18, 0.31), (95.74, 0.19), (97.18, 0.10)),
}
"""Maps a list and a policy to the mean and the standard deviation in percent."""

_GPUS = 6212
_ORIGIN = "https://github.com/alibaba/clusterdata (cluster-trace-gpu-v2023/csv, 7a6c496)"
_SUMS = {
    "cpu050": "747f43247bffc2b0bb081d7f61f0705ca8d390dafc0b647e642c92f3baf3ba1e",
    "cpu100": "bec1c33fbdde61fd463877534ec79b393aec73e1cbb22d55fab9f166ac480982",
    "cpu200": "b7e9d8a1a601da84d6e0b4110b19ef5001be5e4796d33e7b82f166ba95161f87",
    "cpu250": "134c21ff96d57533df8a37b67632972884fec9396e77cd0898ddc370cc8e607d",
    "default": "1ee7ed79c27a3b0861cda8ddba86a004c6aba904caafa329a76ae93ca63834a8",
    "gpushare100": "12dbc07d6a49bf8641e2275a2ff5bf7be74b5df7d148d531e135b140b95f9a3d",
    "gpushare40": "d83ce79a4eb6987524bedbb0c65e41aed3a36bf6c1b78b86234c3687a07e1d40",
    "gpushare60": "d31809628128a1f24491086eda4af3e23882b9213d3ef57a56ee2d1af69492fe",
    "gpushare80": "88b6649369ced40d0fde287d2498ea61ff4b05fccba8bdc95daf6042f2f8431e",
    "gpuspec10": "2dc7e4cb9480484f08539720b433a9ec9ab5d76b396f3f7557c53a2ff78a7611",
    "gpuspec20": "6b9b89ab8913c1c074e994e98f548cf1a872fc5f76f2442ca8cd514a478b00a9",
    "gpuspec25": "9d030679a2ccd7e27a7ec9ff15baff34480d22a0012515691fc187e3f35ee68c",
    "gpuspec33": "eca4f746db1e5b25864ad021b55ece3943e101a3ebd4574d09dcb95c46117652",
    "multigpu20": "d9ec6f6c74fb980cc0b81239470c6353fceea077ea9abd610003b604c7cc2b01",
    "multigpu30": "a5e479c6444b1d83eef848159cf00c3cfa13441b2d1e2c113c391b91f1cc5b11",
    "multigpu40": "32c9e8731ca07ef96108aa65f2a289bb9aacb47f642ed9e3789f99b242df60eb",
    "multigpu50": "206f2f5959db30ecb7c44e7f13197c8ec50b7a35558ad3777cc3662ef0fe5373",
}
_NODES = Source(
    "openb_node_list_gpu_node.csv",
    "2beca64b4d3dfa342036a34b56a495c6cef9225db836c81f541282cb1df320b5",
    _ORIGIN,
)
_LISTS = {name: Source(f"openb_pod_list_{name}.csv", content, _ORIGIN) for name, content in _SUMS.items()}
SOURCES = (_NODES, *_LISTS.values())
_SEEDS = (
    "harness and the published simulator draw the order of pods with different generators, "
    "so equal seeds give different orders"
)


def fgd(files: Mapping[str, Path]) -> list[Row]:
    """Returns the share of GPUs that FGD allocates for each pod list, over ten seeds."""
    cluster = nodes_of(files[_NODES.name])
    found = []
    for name, published in PUBLISHED.items():
        shares = [allocated(cluster, files[_LISTS[name].name], "fgd", seed) for seed in SEEDS]
        theirs, ours = shown(*published[POLICIES.index("fgd")]), shown(mean(shares), stdev(shares))
        found.append(Row(f"{name}: GPUs allocated, %", theirs, ours, "" if theirs == ours else _SEEDS))
    return found


def shown(middle: float, deviation: float) -> str:
    """Formats a mean with a standard deviation."""
    return f"{middle:.2f} ± {deviation:.2f}"


def nodes_of(path: Path) -> Cluster:
    """Returns the nodes in a list as Kubernetes objects, with GPUs as devices."""
    command = [sys.executable, "-m", "harness_plugins.readers.machines", str(path), "--gpu", "devices", "-o"]
    with TemporaryDirectory(prefix="harness-") as folder:
        manifests = Path(folder, path.name).with_suffix(".yaml")
        subprocess.run([*command, str(manifests)], check=True)  # noqa: S603 - a command of this package
        return load_cluster(manifests)


def allocated(cluster: Cluster, pods: Path, policy: str, seed: int) -> float:
    """Returns the percentage of GPUs that a policy allocates to the pods of a list."""
    plugins = load(block=["metrics"])
    trace = open_trace(pods, plugins, options={"fill": str(1.3 * _GPUS), "seed": str(seed)})
    with TemporaryDirectory(prefix="harness-") as folder:
        run = Request(
            trace,
            plugin="none",
            cluster=cluster,
            options={"devices": policy, "deviceSeed": seed, "percentageOfNodesToScore": 100},
            until="30m",
            output=Path(folder, "results"),
        ).run(plugins=plugins)
        started = run.micros("jobs").filter(pl.col("start_time").is_not_null()).select("job_id").collect()
    asked = int(trace.frame.join(started, on="job_id")["request.nvidia.com/gpu-milli"].sum())
    return round(asked / _GPUS / 10, 2)
