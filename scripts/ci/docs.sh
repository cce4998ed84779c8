#!/usr/bin/env bash
# The documentation site, into site/: no warning, no dead link, nothing fetched from elsewhere.
set -euo pipefail
cd "$(dirname "$0")/../.."
bash scripts/environment.sh docs
.venv/bin/python scripts/site.py site
