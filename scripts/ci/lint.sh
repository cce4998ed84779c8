#!/usr/bin/env bash
# Checks lint, format, types and prose, with the tools of the environment .venv, which it makes if it is missing.
set -euo pipefail
cd "$(dirname "$0")/../.."
bash scripts/environment.sh dev
.venv/bin/ruff check .
.venv/bin/ruff format --check .
.venv/bin/mypy
faults=$(.venv/bin/python scripts/voice.py)
if [ -n "$faults" ]; then
  echo "$faults" >&2
  exit 1
fi
