"""`harness plugins --kueue-version`: shows how a release of Kueue decides differently from the newest one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from textwrap import wrap

from harness.cli.screen import terminal_width

_WIDTH = 100


def told_of_release(text: str, *, as_json: bool) -> Iterator[str]:
    """Yields lines: the differences as sentences with links, and the gates that only one release has.

    Raises:
        OptionError: the release is unknown.
    """
    from harness.cluster.kinds.kueue_differences import differences, gates_of_its_own, gates_that_it_lacks
    from harness.cluster.kinds.kueue_releases import NEWEST, release_named

    release = release_named(text)
    found, own, lacking = list(differences(release)), gates_of_its_own(release), gates_that_it_lacks(release)
    width = terminal_width() or _WIDTH
    if as_json:
        yield json.dumps(
            {
                "kueue_version": str(release),
                "newest": str(NEWEST),
                "differences": [each._asdict() for each in found],
                "own_gates": own,
                "lacking_gates": lacking,
            }
        )
        return
    if not found:
        yield f"Kueue {release} decides as {NEWEST} does, the newest that is recorded."
    else:
        yield f"Kueue {release} decides differently from {NEWEST}, the newest that is recorded:"
        for each in found:
            yield ""
            yield from wrap(each.sentence, width, initial_indent="- ", subsequent_indent="  ")
            yield f"  {each.link}"
    for head, names in (
        (f"Gates that {NEWEST} does not have", own),
        (f"Gates that {release} does not have", lacking),
    ):
        if names:
            yield ""
            yield from wrap(f"{head}: {', '.join(names)}", width, subsequent_indent="  ")
    if found:
        yield ""
        yield f"To replay it: --set kueueVersion={release}"
