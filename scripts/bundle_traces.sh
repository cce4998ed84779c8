#!/usr/bin/env bash
# Makes the bundled traces other than Philly's, and their clusters:
#
#     scripts/bundle_traces.sh HPC2N-2002-2.2-cln.swf.gz openb_pod_list_default.csv.gz openb_node_list_all_node.csv.gz
#
# traces/README.md names the sources of the three files, and the changes.
set -euo pipefail
hpc2n=$(realpath "$1") pods=$(realpath "$2") nodes=$(realpath "$3")
cd "$(dirname "$0")/../traces"

harness trace convert "$hpc2n" hpc2n.parquet --set tenant=user --set memory=ignore --tenants top:10
harness cluster init hpc2n.parquet --node cpu=240 --node-pool -o hpc2n.cluster.yaml

harness trace convert "$pods" openb.parquet --window 9400000s..
python -m harness_plugins.readers.machines "$nodes" -o openb.cluster.yaml --keep 10

harness trace generate mix.yaml -o mix.parquet --seed 7
harness cluster init mix.parquet --target-load 1.1 --node-pool -o mix.cluster.yaml
