"""Kinds of manifests that plugins add."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from harness.base.errors import PluginError
from harness.base.names import is_word
from harness.base.values import Value, fixed
from harness.cluster.kinds.kind import Kind
from harness.plugins.registries import Registrar

if TYPE_CHECKING:
    from harness.cluster.coverage.verdicts import Coverage
    from harness.cluster.draft import Draft
    from harness.cluster.yaml.fields import Fields


@fixed()
class KindSpec(Value):
    """A kind of manifests that a plugin adds; its name is `Kind.group`."""

    name: str
    group: str
    kind: str
    how: Kind
    owner: str
    version: str


class RegisterKind(Registrar[KindSpec]):
    """The argument of `harness_register_kinds`."""

    def __call__(
        self,
        group: str,
        kind: str,
        *,
        versions: Iterable[str],
        read: Callable[[Fields, Draft], None],
        coverage: Coverage,
        check: Callable[[Draft], None] | None = None,
    ) -> None:
        """Register a kind of manifests, such as that of a CRD.

        Args:
            group: its API group, such as `scheduling.volcano.sh`.
            kind: its kind, such as `Queue`.
            versions: the supported API versions; another version is a fault.
            read: reads an object. It adds faults to the object's fields, and adds the object to
                `draft.custom_resources("Queue.scheduling.volcano.sh")`. The object then appears in
                `cluster.custom_resources` under the same name.
            coverage: the verdict on every field; harness warns users about unknown and unmodelled fields.
            check: checks the rules between objects, once after all objects are read; kinds may share a check.

        Raises:
            PluginError: harness itself, or another plugin, already reads the kind.
            RegistrationError: the registration is invalid; names the plugin.
        """
        from harness.cluster.coverage.verdicts import Coverage
        from harness.cluster.kinds.table import OURS

        about = self.about(f"{kind}.{group}")
        if not is_word(kind) or not (is_word(group) or group == ""):
            about.refuse("group and kind must be words, such as scheduling.volcano.sh and Queue")
        known = about.several("versions", versions)
        about.functions(read=read)
        about.functions_or_none(check=check)
        if not isinstance(coverage, Coverage):
            about.refuse("coverage must be a Coverage")
        if (group, kind) in OURS:
            raise PluginError(
                f"kind {kind}.{group} of plugin {self.owner.name!r} is a built-in kind of harness",
                hint=f"leave the plugin out with --no-plugin {self.owner.name}",
            )
        how = Kind(known, read, coverage, check)
        self.registry.add(KindSpec(f"{kind}.{group}", group, kind, how, self.owner.name, self.owner.version))
