#!/usr/bin/env bash
# Checks that a tag agrees with pyproject.toml, CITATION.cff and a dated heading of CHANGELOG.md:
# `bash scripts/ci/release.sh v0.2.0`.
set -euo pipefail
tag=${1:?the tag}
cd "$(dirname "$0")/../.."
version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
fault() {
  echo "$1" >&2
  exit 1
}
[ "$tag" = "v$version" ] || fault "the tag is $tag, but pyproject.toml has version $version"
grep -q "^version: \"$version\"$" CITATION.cff || fault "CITATION.cff does not have version $version"
grep -qE "^## ${version//./\\.} - [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md ||
  fault "CHANGELOG.md has no heading '## $version - YYYY-MM-DD'"
