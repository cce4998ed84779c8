"""What a plugin registers as a section of reports."""

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
"""The place of a section that asks for none: behind the built-in ones, before what was assumed."""

MakeSection: TypeAlias = "Callable[[Material], Iterable[Block]]"


@fixed()
class SectionSpec(Value):
    """A registered section: what makes it, its heading, and where in a report it stands."""

    name: str
    make: MakeSection
    title: str
    help: str
    place: int
    owner: str
    version: str

    @property
    def order(self) -> tuple[int, str]:
        """Sections stand in this order."""
        return self.place, self.name


class RegisterSection(Registrar[SectionSpec]):
    """What `harness_register_sections` gets."""

    def __call__(self, name: str, make: MakeSection, *, title: str, help: str, place: int = UNPLACED) -> None:
        """Register a section of reports.

        Args:
            name: its name, which is also its address within the page.
            make: answers what stands in it, from the runs; where it answers nothing the section is left out.
            title: its heading.
            help: one line that says what it shows.
            place: sections stand in this order, and of one place in that of their names. Built-in ones are at
                100, 200, ...; the last of them, what was assumed, at 10,000.

        Raises:
            RegistrationError: something of it cannot be registered; names the plugin.
        """
        owner, about = self.owner, self.about(name)
        about.named()
        about.texts(title=title, help=help)
        about.functions(make=make)
        if type(place) is not int:
            about.refuse(f"place must be a whole number, and is {place!r}")
        self.registry.add(SectionSpec(name, make, title, help, place, owner.name, owner.version))


def named(section: str, owner: str) -> AbstractContextManager[None]:
    """An error within names the section and its plugin.

    Raises:
        PluginError: something failed.
    """
    hint = f"--debug shows where; --no-plugin {owner} leaves it out"
    return blamed_on(f"section {section!r} of plugin {owner!r} failed", hint=hint)
