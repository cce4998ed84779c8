#!/usr/bin/env bash
# Builds the plain wheel and the compiled one, and tests that they decide the same: recorded decisions (all that are at
# hand), the tests of everything that decides, of the engine that refuses, and of plugins of others; and what runs of all
# built-in policies consist of, to the byte, under another order of sets:
#
#     bash scripts/ci/compiled.sh
#
# Needs a C compiler and Python's headers.
set -euo pipefail
cd "$(dirname "$0")/../.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"${PYTHON:-python3}" -m venv "$fresh/venv"
bin=$fresh/venv/bin
export PYTHONSAFEPATH=1 # else `python -m` would import the checkout
tests=(tests/engine tests/models tests/plugins tests/testing tests/runs tests/test_compiled.py tests/test_golden.py
  tests/test_installed_plugins.py tests/test_plugins.py tests/test_memo.py tests/test_options.py tests/test_conformance.py
  tests/test_replay.py tests/test_closed_loop.py tests/test_recorded.py tests/test_starting_state.py tests/test_published_*.py)
"$bin/python" -m pip install -q 'build>=1'

for build in plain compiled; do
  echo "== the $build build"
  flag=0
  [ "$build" = plain ] || flag=1
  HARNESS_COMPILE=$flag "$bin/python" -m build --wheel --outdir "$fresh/$build" .
  wheel=$(echo "$fresh/$build"/*.whl)
  if [ "$build" = plain ]; then
    "$bin/python" -m pip install -q "$wheel[test]"
  else
    "$bin/python" -m pip install -q --force-reinstall --no-deps "$wheel"
  fi
  told=$(cd "$fresh" && "$bin/harness" --version)
  echo "$told"
  [[ $told == *", compiled" ]] || [ "$build" = plain ]
  "$bin/pytest" -q -n 2 -p no:cacheprovider -m 'slow or not slow' tests/conformance
  "$bin/pytest" -q -n 2 -p no:cacheprovider "${tests[@]}"
  PYTHONHASHSEED=$flag "$bin/python" scripts/runs_to_compare.py "$fresh/runs-$build"
done

diff -r "$fresh/runs-plain" "$fresh/runs-compiled"
echo "== both builds decide the same"
