#!/usr/bin/env bash
# Runs the tests that touch dependencies, on the oldest Python and the oldest versions that pyproject.toml allows:
#
#     bash scripts/ci/oldest.sh         tables, files, metrics and plugins
#     bash scripts/ci/oldest.sh all     also comparisons, the engine, exports, live clusters, recordings and runs
#
set -euo pipefail
case "${1:-}" in
  "") more=() ;;
  all) more=(tests/comparison tests/engine tests/export tests/live tests/recording tests/runs) ;;
  *)
    echo "what is $1? all, or nothing" >&2
    exit 2
    ;;
esac
cd "$(dirname "$0")/../.."
oldest=python$(sed -n 's/^requires-python = ">=\(.*\)"/\1/p' pyproject.toml)
if ! "$oldest" -c '' 2>/dev/null; then
  echo "== LEFT OUT, as there is no $oldest: the oldest versions that are allowed"
  exit 0
fi
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"$oldest" -m venv "$fresh/oldest"
"$fresh/oldest/bin/python" -m pip install -q -c tests/oldest.txt -e '.[dev]'
"$fresh/oldest/bin/python" -m pytest -q -n 2 tests/files tests/metrics "${more[@]}" tests/test_packaging.py \
  tests/test_plugins.py tests/trace/test_sums.py tests/trace/test_summary.py tests/plugins/readers/test_parquet_reader.py \
  tests/plugins/readers/test_tables.py tests/plugins/readers/test_table_terms.py \
  tests/plugins/readers/test_short_mappings.py tests/plugins/readers/test_table_suggestions.py
