"""Publishes a site next to the sites of other versions: `python scripts/place_docs.py SITE PAGES NAME`.

NAME is `latest` or a tag such as `v0.2.0`. The highest tag is also published as `stable`. PAGES is the
published folder. Its front page links to `stable`, or to `latest` before the first release, and lists all
versions.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

LATEST, STABLE = "latest", "stable"
_TAG = re.compile(r"v(\d+)\.(\d+)\.(\d+)")
_FRONT = """\
<!doctype html>
<html lang="en"><meta charset="utf-8"><title>harness</title>
<meta http-equiv="refresh" content="0; url={first}/">
<p>harness: {links}</p></html>
"""


def place(site: Path, pages: Path, name: str) -> None:
    """Copies a site to its place, and writes the front page.

    Raises:
        ValueError: the name is neither `latest` nor a tag.
    """
    if name != LATEST and not _TAG.fullmatch(name):
        raise ValueError(f"{name}: write latest, or a tag such as v0.2.0")
    _copy(site, pages / name)
    tags = sorted(
        (each.name for each in pages.iterdir() if _TAG.fullmatch(each.name)),
        key=lambda tag: [int(part) for part in tag[1:].split(".")],
        reverse=True,
    )
    if tags[:1] == [name]:
        _copy(site, pages / STABLE)
    names = [each for each in (STABLE, LATEST) if (pages / each).is_dir()]
    links = " · ".join(f'<a href="{each}/">{each}</a>' for each in [*names, *tags])
    (pages / "index.html").write_text(_FRONT.format(first=names[0], links=links), encoding="utf-8")
    (pages / ".nojekyll").touch()


def _copy(site: Path, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(site, place)


if __name__ == "__main__":
    place(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
