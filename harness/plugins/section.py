"""Sections of reports that a plugin registers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeAlias

from harness.base.errors import blamed_on
from harness.base.values import Value, fixed
from harness.plugins.registries import Registrar

if TYPE_CHECKING:
    from harness.analysis.report.blocks import Block
    from harness.analysis.report.material import Material

UNPLACED = 1000
"""The default place of a section: after the built-in sections, before the assumptions."""

MakeSection: TypeAlias = "Callable[[Material], Iterable[Block]]"


@fixed()
class SectionSpec(Value):
    """A registered section: the function that makes it, its heading, and its place in a report."""

    name: str
    make: MakeSection
    title: str
    help: str
    place: int
    owner: str
    version: str

    @property
    def order(self) -> tuple[int, str]:
        """The sort key of sections."""
        return self.place, self.name


class RegisterSection(Registrar[SectionSpec]):
    """The argument of `harness_register_sections`."""

    def __call__(self, name: str, make: MakeSection, *, title: str, help: str, place: int = UNPLACED) -> None:
        """Register a section of reports.

        Args:
            name: its name, which is also its anchor in the page.
            make: returns its content for some runs; without content the section is left out.
            title: its heading.
            help: one line that describes its content.
            place: the sort key of sections; equal places are sorted by name. Built-in sections are at 100,
                200, ...; the last built-in section, the assumptions, is at 10,000.

        Raises:
            RegistrationError: the registration is invalid; names the plugin.
        """
        owner, about = self.owner, self.about(name)
        about.named()
        about.texts(title=title, help=help)
        about.functions(make=make)
        if type(place) is not int:
            about.refuse(f"place must be a whole number, but is {place!r}")
        self.registry.add(SectionSpec(name, make, title, help, place, owner.name, owner.version))


def named(section: str, owner: str) -> AbstractContextManager[None]:
    """Turn an error within the block into an error that names the section and its plugin.

    Raises:
        PluginError: the block failed.
    """
    hint = f"--debug shows where it failed, and --no-plugin {owner} leaves the plugin out"
    return blamed_on(f"section {section!r} of plugin {owner!r} failed", hint=hint)
