#!/usr/bin/env bash
# Checks that take too long for every change:
#
#     bash scripts/ci/nightly.sh conformance    all available recorded decisions
#     bash scripts/ci/nightly.sh fuzz [NIGHT]   mutated inputs, and random worlds, also of Kueue. They differ each
#                                               night, and take two hours on one core.
#     bash scripts/ci/nightly.sh faults         each system call of a command fails, and the command is killed at each
#     bash scripts/ci/nightly.sh coverage       the lines that the suite runs, with all examples and with the tests
#                                               marked `nightly`, with a least share
set -euo pipefail
what=${1:?conformance, fuzz, faults or coverage}
night=${2:-0}
cd "$(dirname "$0")/../.."
bash scripts/environment.sh dev
case "$what" in
  conformance) .venv/bin/python -m pytest -q -m 'slow or not slow' tests/conformance ;;
  fuzz)
    FUZZ_SEEDS=$((night * 2500)):$((night * 2500 + 2500)) \
      .venv/bin/python -m pytest -q -n auto -m slow tests/test_fuzz.py
    WORLDS=$((night * 100)):$((night * 100 + 100)) .venv/bin/python -m pytest -q -n auto -m slow tests/testing
    KUEUE_FUZZ=20 .venv/bin/python -m pytest -q -n auto tests/plugins/kueue
    ;;
  faults) .venv/bin/python -m pytest -q -m slow tests/test_faults.py ;;
  coverage)
    export EXAMPLES=1 QUOTA_FUZZ=1 KUBE_FUZZ=1 KUEUE_FUZZ=1
    .venv/bin/python -m pytest -q -n 2 -m 'not slow' --cov --cov-report=term:skip-covered
    .venv/bin/python -m pytest -q -n 2 -m slow tests/report tests/test_packaging.py \
      tests/test_validation_thresholds.py tests/docs/test_scale.py tests/live/test_hostile_servers.py \
      tests/testing/test_worlds_with_devices.py tests/test_installed_plugins.py tests/cli
    ;;
  *)
    echo "what is $what? conformance, fuzz, faults or coverage" >&2
    exit 2
    ;;
esac
