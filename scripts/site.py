"""Builds the documentation site without network: `python scripts/site.py site/`, with the extra `docs`.

The pages have the same layout as in the repository, so links between them work in both places. The front page
is docs/README.md, and its headings are the parts of the site. The gallery and the reference (command line,
Python, options, metrics, schemas) are made from the code. The script fails if there is a warning, or if a
page would fetch anything from elsewhere.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import polars as pl
import yaml

import harness
from harness.base.options import Option, durations, option_text
from harness.base.tables import schemas
from harness.base.text import printable
from harness.plugins import Plugins, load
from harness.studies.experiments.objectives import Judged
from harness.studies.experiments.report import report

ROOT = Path(__file__).resolve().parents[1]
TOP = (
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"),
    *("plugins/README.md", "traces/README.md", "docs/examples/volcano_proportion/README.md"),
    "plugins/harness_plugins/kueue/RULES.md",
)
API = (
    "harness",
    "harness.policy",
    "harness.plugins.hookspecs",
    "harness.analysis.report.blocks",
    "harness.base.options",
    "harness.testing",
    "harness.testing.checks",
    "harness.base.errors",
)
"""The modules whose docstrings are shown because programs and plugins use them."""

LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
FETCHED = re.compile(
    r"""<(?:script|link|img|iframe|source|video)\b[^>]*?(?:src|href)=["']((?:https?:)?//[^"']+)"""
)
IMPORTED = re.compile(r"""(?:@import\s+["']|url\(["']?)((?:https?:)?//[^"')]+)""")

CONF = """\
project = "harness"
author = copyright = "The harness developers"
release = version = {version!r}
extensions = ["myst_parser", "sphinx_click", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "harness " + release
html_show_copyright = False
html_extra_path = ["gallery_files"]
myst_heading_anchors = 4
myst_enable_extensions = ["strikethrough"]
highlight_language = "text"
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
suppress_warnings = ["myst.strikethrough", "misc.highlighting_failure", "ref.python"]
exclude_patterns = ["gallery_files"]
napoleon_use_ivar = True
smartquotes = False  # it makes one dash of the two of an option


def setup(app):
    def plain(app, ctx, lines):
        lines[:] = [line.replace("*", "\\\\*") for line in lines]

    app.connect("sphinx-click-process-description", plain)
    app.connect("sphinx-click-process-epilog", plain)
"""


def pages() -> list[Path]:
    """Returns the Markdown pages, relative to the repository."""
    return [Path(name) for name in TOP] + sorted(
        path.relative_to(ROOT) for path in (ROOT / "docs").glob("*.md")
    )


def links(page: Path) -> Iterator[tuple[str, str]]:
    """Yields the links from a page to files of the repository, as written: path and anchor.

    Links in code are left out.
    """
    text = (ROOT / page).read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    for target, anchor in LINK.findall(re.sub(r"`[^`\n]*`(?!\])", "", text)):
        if not re.match(r"[a-z]+:", target):
            yield target, anchor


def copy_pages(source: Path) -> None:
    """Copies pages, and the files that they show or link to, to the same places as in the repository."""
    for page in pages():
        for name, _ in [(page.name, ""), *links(page)]:
            path = (ROOT / page.parent / name).resolve()
            to = source / path.relative_to(ROOT)
            to.parent.mkdir(parents=True, exist_ok=True)
            if path.is_file() and not to.exists():
                shutil.copy(path, to)
    for name in ("README.md", "CHANGELOG.md"):  # the front page has its own place in the site
        text = (source / name).read_text(encoding="utf-8")
        (source / name).write_text(text.replace("(docs/README.md)", "(index.md)"), encoding="utf-8")
    front = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    (source / "docs" / "README.md").unlink()
    (source / "index.md").write_text(_with_contents(front), encoding="utf-8")


def _with_contents(front: str) -> str:
    """Returns the front page. Its lists are the contents of the site."""
    front = LINK.sub(lambda found: f"]({_from_top(found[1])}{found[2] or ''})", front)
    parts = re.split(r"^## ", front, flags=re.MULTILINE)
    trees = []
    for part in parts[1:]:
        title, _, body = part.partition("\n")
        entries = [name.removesuffix(".md") for name, _ in LINK.findall(body)]
        if title == "Reference":
            entries += [f"reference/{name}" for name in ("cli", "api", "options", "metrics", "schemas")]
        trees.append((title, entries))
    trees.append(("Gallery", ["gallery/index"]))
    made = [
        f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n" + "\n".join(entries) + "\n```\n"
        for title, entries in trees
    ]
    front = front.replace("\n## How schedulers decide", _GENERATED + "\n## How schedulers decide")
    return front + "\n" + _GALLERY + "\n" + "\n".join(made)


_GENERATED = """\
- [Every command](reference/cli.md), [Python](reference/api.md), [options of plugins](reference/options.md),
  [metrics by name](reference/metrics.md), [tables of a run](reference/schemas.md)
"""
_GALLERY = """\
## Gallery

- [Reports of bundled traces](gallery/index.md)
"""


def _from_top(target: str) -> str:
    return target.removeprefix("../") if target.startswith("../") else f"docs/{target}"


# --- the reference ------------------------------------------------------------------------------------------


def reference(source: Path, plugins: Plugins) -> None:
    """Writes the pages that are made from the code."""
    folder = source / "reference"
    folder.mkdir()
    made = {
        "cli": _CLI,
        "api": "# Python\n\n" + "\n".join(map(_module, API)),
        "options": "\n".join(_options(plugins)),
        "metrics": "\n".join(_metrics(plugins)),
        "schemas": "\n".join(_schemas()),
    }
    for name, text in made.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")


_CLI = """\
# Every command

```{eval-rst}
.. click:: harness.cli:cli
   :prog: harness
   :nested: full
```
"""


def _module(name: str) -> str:
    members = "   :members:\n"
    if name == "harness":  # most members are also documented under their own modules
        names = sorted(each for each in harness.__all__ if each != "__version__")
        members = f"   :members: {', '.join(names)}\n   :no-index:\n"
    return f"## `{name}`\n\n```{{eval-rst}}\n.. automodule:: {name}\n{members}```\n"


def _options(plugins: Plugins) -> Iterator[str]:
    yield "# Options of plugins\n\nGiven with `--set NAME=VALUE`, for one run of several with its label.\n"
    for title, specs in (("Policies", plugins.policies), ("Readers", plugins.readers)):
        yield f"## {title}\n"
        for spec in specs:
            yield f"### `{spec.name}`\n\n{_cell(spec.help)}\n"
            if spec.options:
                yield "| option | default | what it does |\n| --- | --- | --- |"
                yield from (_option(option) for option in spec.options)
                yield ""


def _option(option: Option) -> str:
    choices = f" ({', '.join(f'`{each}`' for each in option.choices)})" if option.choices else ""
    shown = option_text(option.default, duration=bool(durations([option])))
    default = f"`{shown}`" if shown else ""
    return f"| `{option.name}` | {default} | {_cell(option.help)}{choices} |"


def _metrics(plugins: Plugins) -> Iterator[str]:
    yield "# Metrics by name\n\n[What each of them is](../docs/metrics.md). Groups that plugins bring:\n"
    yield "| group | of plugin | what it measures |\n| --- | --- | --- |"
    yield from (f"| `{spec.name}` | `{spec.owner}` | {_cell(spec.help)} |" for spec in plugins.metrics)
    with tempfile.TemporaryDirectory() as folder:
        run = harness.replay(ROOT / "traces" / "mix.parquet", plugin="fairsharing", until="3h", output=folder)
        measured = run.metrics
    kinds = measured.with_columns(kind=pl.col("scope").str.extract(r"^(\w+)")).group_by("metric")
    rows = kinds.agg(pl.col("unit", "better").first(), pl.col("kind").unique().sort()).sort("metric")
    yield "\nOf a run of `fairsharing` on the bundled mix:\n"
    yield "| metric | unit | better | by |\n| --- | --- | --- | --- |"
    for name, unit, better, scopes in rows.iter_rows():
        yield f"| `{name}` | {unit} | {better} | {', '.join(scopes)} |"


def _schemas() -> Iterator[str]:
    yield f"# Tables of a run\n\nSchema {schemas.VERSION}; [what the columns mean](../docs/runs.md).\n"
    yield "`<resource>` stands for each resource.\n"
    for name in ("jobs", "decisions", "stints", "timeline", "metrics"):
        yield f"## `{name}.parquet`\n\n| column | type |\n| --- | --- |"
        columns = schemas.table(name, ["<resource>"], schemas.VERSION)
        times = {"submit_time", "admitted_time", "start_time", "finish_time", "time", "start", "end"}
        for column, dtype in columns.items():
            shown = "timestamp or duration, microseconds" if column in times else str(dtype)
            yield f"| `{column}` | {shown} |"
        yield ""


def _cell(text: str) -> str:
    """Returns text from the code for a cell of a table, without changes in its meaning."""
    return re.sub(r"([|<>*_\[\]])", r"\\\1", printable(text))


# --- the gallery --------------------------------------------------------------------------------------------

REPORTS = (
    (
        "mix",
        ("kueue-classic", "fairsharing"),
        "2d",
        "Two kinds of preemption on a synthetic mix of four teams",
    ),
    (
        "philly",
        ("none", "kueue-classic"),
        "10d",
        "Virtual clusters of GPUs at Microsoft, without quotas and with",
    ),
)


EXPERIMENT = ROOT / "docs" / "examples" / "sweep.yaml"


def gallery(source: Path) -> None:
    """Writes reports of bundled traces and of an experiment, and the commands that make them."""
    files, folder = source / "gallery_files" / "reports", source / "gallery"
    files.mkdir(parents=True)
    folder.mkdir()
    lines = ["# Reports of bundled traces\n\nEach is one page that needs nothing else.\n"]
    for trace, names, until, about in REPORTS:
        with tempfile.TemporaryDirectory() as results:
            path = ROOT / "traces" / f"{trace}.parquet"
            runs = [harness.replay(path, plugin=name, until=until, output=results) for name in names]
            page = harness.make_report(runs).html()
        (files / f"{trace}.html").write_text(page, encoding="utf-8")
        chosen = " ".join(f"-p {name}" for name in names)
        lines.append(f'## {about}\n\n<a href="../reports/{trace}.html">The report</a>, made by\n')
        lines.append(f"```\nharness replay traces/{trace}.parquet {chosen} --until {until}")
        lines.append(f"harness report results/{trace}/* -o {trace}.html\n```\n")
    (files / "experiment.html").write_text(_experiment(), encoding="utf-8")
    lines.append("## An experiment: two policies, three loads, and what preemption costs\n")
    lines.append('<a href="../reports/experiment.html">The report</a>, made by, for its first day,\n')
    lines.append(f"```\nharness sweep {EXPERIMENT.relative_to(ROOT)}")
    lines.append("harness experiment report results/load-and-losses\n```\n")
    (folder / "index.md").write_text("\n".join(lines), encoding="utf-8")


def _experiment() -> str:
    """Returns the report of the first day of an experiment."""
    spec = yaml.safe_load(EXPERIMENT.read_text(encoding="utf-8"))
    spec |= {"trace": str((EXPERIMENT.parent / spec["trace"]).resolve()), "settings": {"until": "1d"}}
    with tempfile.TemporaryDirectory() as results:
        return report(Judged(harness.sweep(spec, output=results, workers=1))).html()


# --- the site -----------------------------------------------------------------------------------------------


def fetched(site: Path) -> list[str]:
    """Returns the addresses that pages would fetch from elsewhere."""
    found = []
    for path in sorted(site.rglob("*")):
        if path.suffix in (".html", ".css"):
            text = path.read_text(encoding="utf-8")
            urls = [*FETCHED.findall(text), *IMPORTED.findall(text)]
            found += [f"{path.relative_to(site)}: {url}" for url in urls]
    return found


def main() -> None:
    """Makes the site, or prints its faults."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("site", type=Path, help="the folder to write; its content is replaced")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        source = Path(temporary)
        copy_pages(source)
        reference(source, load())
        gallery(source)
        (source / "conf.py").write_text(
            CONF.replace("{version!r}", repr(version("harness-replay"))), encoding="utf-8"
        )
        shutil.rmtree(given.site, ignore_errors=True)
        command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
        made = subprocess.run([*command, str(source), str(given.site)], check=False)  # noqa: S603 - our own
    outside = fetched(given.site)
    if outside:
        sys.stderr.write("\n".join(["pages fetch from elsewhere:", *outside, ""]))
    shutil.rmtree(given.site / ".doctrees", ignore_errors=True)
    sys.exit(made.returncode or bool(outside))


if __name__ == "__main__":
    main()
