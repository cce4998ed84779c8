#!/usr/bin/env bash
# Builds the plain wheel and the compiled wheel, and tests that both write the same decisions, byte for byte. The two
# builds also use different hash seeds.
#
#     bash scripts/ci/compiled.sh         tests the excerpts of recorded decisions and the referee in the compiled
#                                         build, and replays all built-in policies until day 16 in both builds
#     bash scripts/ci/compiled.sh all     tests all available recorded decisions, policies, the engine's refusals and
#                                         third-party plugins, and replays until day 25, in both builds
#
# The script needs a C compiler and Python's headers.
set -euo pipefail
what=${1:-decisions}
case "$what" in
  decisions) until=16d ;;
  all) until=25d ;;
  *)
    echo "what is $what? all, or nothing" >&2
    exit 2
    ;;
esac
cd "$(dirname "$0")/../.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"${PYTHON:-python3}" -m venv "$fresh/venv"
bin=$fresh/venv/bin
export PYTHONSAFEPATH=1 # else `python -m` would import the checkout
tests=(tests/engine tests/models tests/plugins tests/testing tests/runs tests/test_compiled.py
  tests/cli/test_reproduce_command.py tests/test_installed_plugins.py tests/test_plugins.py tests/test_memo.py
  tests/test_options.py tests/test_conformance.py tests/test_replay.py tests/test_closed_loop.py
  tests/test_recorded.py tests/test_starting_state.py tests/test_published_*.py)
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
  if [ "$what" = all ]; then
    "$bin/pytest" -q -n 2 -p no:cacheprovider -m 'slow or not slow' tests/conformance
    "$bin/pytest" -q -n 2 -p no:cacheprovider "${tests[@]}"
  elif [ "$build" = compiled ]; then
    "$bin/pytest" -q -n 2 -p no:cacheprovider tests/conformance tests/engine/test_referee.py
  fi
  PYTHONHASHSEED=$flag "$bin/python" scripts/runs_to_compare.py "$fresh/runs-$build" "$until"
done

diff -r "$fresh/runs-plain" "$fresh/runs-compiled"
echo "== both builds make the same decisions"
