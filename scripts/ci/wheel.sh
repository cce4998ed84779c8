#!/usr/bin/env bash
# Builds the source archive and the wheel into dist/, installs the wheel, and tests it:
#
#     bash scripts/ci/wheel.sh smoke     its own smoke tests, in a folder without a checkout
#     bash scripts/ci/wheel.sh all       these and the whole suite, with the wheel in place of the checkout
set -euo pipefail
what=${1:?smoke or all}
cd "$(dirname "$0")/../.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"${PYTHON:-python3}" -m venv "$fresh/venv"
"$fresh/venv/bin/python" -m pip install -q 'build>=1'
rm -rf dist
"$fresh/venv/bin/python" -m build --outdir dist .
wheel=$(echo "$PWD"/dist/*.whl)
"$fresh/venv/bin/python" -m pip install -q "$wheel[test]"
mkdir "$fresh/empty"
(cd "$fresh/empty" && "$fresh/venv/bin/pytest" -q -p no:cacheprovider --pyargs harness.testing.smoke)
if [ "$what" = all ]; then
  "$fresh/venv/bin/pytest" -q -n 2 # not `python -m pytest`, which would import the checkout
fi
