#!/usr/bin/env bash
# Makes the documentation site in site/, without warnings, dead links, or anything that is fetched from elsewhere.
set -euo pipefail
cd "$(dirname "$0")/../.."
bash scripts/environment.sh docs
.venv/bin/python scripts/site.py site
