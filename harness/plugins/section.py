"""Defines how plugins register sections of reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeAlias

from harness.base.errors import blamed_on
from harness.base.values import fixed
from harness.plugins.registries import Registration, Spec

if TYPE_CHECKING:
    from harness.analysis.report.blocks import Block
    from harness.analysis.report.material import Material

UNPLACED = 1000
"""The default place of a section, which is after the built-in sections and before the assumptions."""

MakeSection: TypeAlias = "Callable[[Material], Iterable[Block]]"


@fixed()
class SectionSpec(Spec):
    """A section of reports, as a plugin registers it with `harness_register_sections`.

    The name of the section is also its anchor on the page.

    Attributes:
        make: a function that returns the content of the section for the given runs. If there is no content,
            the report omits the section.
        title: the heading.
        help: a description of the content in one line.
        place: the sort key of the section. Sections with equal places are sorted by name. Built-in sections
            have the places 100, 200 and so on, and the assumptions at the end have 10,000.
    """

    make: MakeSection
    title: str
    help: str
    place: int = UNPLACED

    @property
    def order(self) -> tuple[int, str]:
        """The sort key of sections."""
        return self.place, self.name

    def checked(self, about: Registration) -> SectionSpec:
        """Returns the specification after a check; see `Spec.checked`."""
        about.named()
        about.texts(title=self.title, help=self.help)
        about.functions(make=self.make)
        if type(self.place) is not int:
            about.refuse(f"'place' must be a whole number, but is {self.place!r}")
        return self


def named(section: str, owner: str) -> AbstractContextManager[None]:
    """Convert an error in the block into an error that names the section and its plugin.

    Raises:
        PluginError: the block failed.
    """
    hint = f"--debug shows where it failed, and --no-plugin {owner} leaves the plugin out"
    return blamed_on(f"section {section!r} of plugin {owner!r} failed", hint=hint)
