#!/bin/sh
# Installs a wheel for a container: `sh container.sh WHEEL PREFIX`. Containerfile runs it, and so does a test, in an
# empty folder: PREFIX then has all that the image adds to its base.
set -eu
wheel=$1 prefix=$2
python3 -m venv "$prefix"
"$prefix/bin/python" -m pip install --no-cache-dir --no-compile "$wheel[live,report]"
"$prefix/bin/python" -m pip uninstall --yes pip > /dev/null
find "$prefix" -name tests -path '*/site-packages/*' -type d -prune -exec rm -rf {} +
"$prefix/bin/harness" --version
