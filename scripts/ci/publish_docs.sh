#!/usr/bin/env bash
# Builds the site and publishes it on the branch gh-pages: main as latest, a tag under its name.
# `bash scripts/ci/publish_docs.sh branch main` or `... tag v0.2.0`
set -euo pipefail
kind=${1:?branch or tag} name=${2:?its name}
cd "$(dirname "$0")/../.."
[ "$kind" = tag ] || name=latest
bash scripts/ci/docs.sh
pages=$(mktemp -d)
git fetch -q origin gh-pages || true
if git rev-parse -q --verify origin/gh-pages > /dev/null; then
  git worktree add -q -B gh-pages "$pages" origin/gh-pages
else
  git worktree add -q --detach "$pages"
  git -C "$pages" checkout -q --orphan gh-pages
  git -C "$pages" rm -rfq .
fi
python3 scripts/place_docs.py site "$pages" "$name"
cd "$pages"
git add -A
git -c user.name=docs -c user.email=docs@localhost commit -qm "docs: $name" || true
git push -q origin gh-pages
cd - > /dev/null
git worktree remove --force "$pages"
