#!/usr/bin/env bash
# The documentation site, into site/: no warning, no dead link, nothing fetched from elsewhere.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ -x .venv/bin/python ] || "${PYTHON:-python3}" -m venv .venv
.venv/bin/python -m pip install -q -e '.[docs]'
.venv/bin/python scripts/site.py site
