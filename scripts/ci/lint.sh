#!/usr/bin/env bash
# Lint, format and types, with the tools of the environment .venv, which is made where there is none.
set -euo pipefail
cd "$(dirname "$0")/../.."
bash scripts/environment.sh dev
.venv/bin/ruff check .
.venv/bin/ruff format --check .
.venv/bin/mypy
