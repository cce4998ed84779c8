"""Defines how plugins register sections of reports."""

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
"""The default place of a section, which is after the built-in sections and before the assumptions."""

MakeSection: TypeAlias = "Callable[[Material], Iterable[Block]]"


@fixed()
class SectionSpec(Value):
    """A registered section, with the function that creates it, its heading and its place in a report."""

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
    """Registers a section; passed to `harness_register_sections`."""

    def __call__(self, name: str, make: MakeSection, *, title: str, help: str, place: int = UNPLACED) -> None:
        """Register a section of reports.

        Args:
            name: the name of the section, which is also its anchor on the page.
            make: a function that returns the content of the section for the given runs. If there is no
                content, the report omits the section.
            title: the heading.
            help: a description of the content in one line.
            place: the sort key of the section. Sections with equal places are sorted by name. Built-in
                sections have the places 100, 200 and so on, and the assumptions at the end have 10,000.

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
    """Convert an error in the block into an error that names the section and its plugin.

    Raises:
        PluginError: the block failed.
    """
    hint = f"--debug shows where it failed, and --no-plugin {owner} leaves the plugin out"
    return blamed_on(f"section {section!r} of plugin {owner!r} failed", hint=hint)
