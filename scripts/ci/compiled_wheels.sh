#!/usr/bin/env bash
# Builds compiled wheels into dist/, one for each supported version of Python. Then tests that each wheel reports that
# it is compiled, and that its referee refuses wrong decisions with the usual messages.
set -euo pipefail
cd "$(dirname "$0")/../.."
python -m pip install -q cibuildwheel==4.3.5
export CIBW_BUILD="cp311-* cp312-* cp313-*" CIBW_SKIP="*-musllinux_* *-manylinux_i686"
export CIBW_ENVIRONMENT="HARNESS_COMPILE=1" CIBW_TEST_EXTRAS="test"
export CIBW_TEST_COMMAND="harness --version | grep ', compiled' && pytest -q {project}/tests/engine/test_referee.py"
python -m cibuildwheel --output-dir dist
