#!/usr/bin/env bash
# Installs the checkout with an extra in the environment .venv, and makes .venv if it is missing:
#
#     bash scripts/environment.sh docs
#
# It installs again only after pyproject.toml has changed: for a moment, pip removes the old installation, and other
# processes of this environment, such as running tests, would then find no plugins.
set -euo pipefail
extra=${1:?the extra}
cd "$(dirname "$0")/.."
[ -x .venv/bin/python ] || "${PYTHON:-python3}" -m venv .venv
[ ! ".venv/installed-$extra" -nt pyproject.toml ] || exit 0
.venv/bin/python -m pip --version > /dev/null 2>&1 || .venv/bin/python -m ensurepip > /dev/null # uv's have no pip
.venv/bin/python -m pip install -q -e ".[$extra]"
touch ".venv/installed-$extra"
