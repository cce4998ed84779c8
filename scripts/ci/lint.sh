#!/usr/bin/env bash
# Lint, format and types, with the tools of the environment .venv, which is made where there is none.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ -x .venv/bin/python ] || "${PYTHON:-python3}" -m venv .venv
.venv/bin/python -m pip install -q -e '.[dev]'
.venv/bin/ruff check .
.venv/bin/ruff format --check .
.venv/bin/mypy
