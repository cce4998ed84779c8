#!/usr/bin/env bash
# What takes too long for every change:
#
#     bash scripts/ci/nightly.sh conformance    all recorded decisions that are at hand
#     bash scripts/ci/nightly.sh fuzz           mutated inputs, random worlds, and random worlds of Kueue
#     bash scripts/ci/nightly.sh faults         every call of a command fails, and it is killed everywhere
#     bash scripts/ci/nightly.sh coverage       which lines the suite runs, with a least share
set -euo pipefail
what=${1:?conformance, fuzz, faults or coverage}
cd "$(dirname "$0")/../.."
bash scripts/environment.sh dev
case "$what" in
  conformance) .venv/bin/python -m pytest -q -m 'slow or not slow' tests/conformance ;;
  fuzz)
    .venv/bin/python -m pytest -q -m slow tests/test_fuzz.py
    WORLDS=0:200 .venv/bin/python -m pytest -q -m slow tests/testing
    KUEUE_FUZZ=50 .venv/bin/python -m pytest -q tests/plugins/kueue
    ;;
  faults) .venv/bin/python -m pytest -q -m slow tests/test_faults.py ;;
  coverage) .venv/bin/python -m pytest -q -n 2 --cov --cov-report=term:skip-covered ;;
  *)
    echo "what is $what? conformance, fuzz, faults or coverage" >&2
    exit 2
    ;;
esac
