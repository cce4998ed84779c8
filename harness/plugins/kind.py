"""Kinds of manifests that plugins bring."""

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
    """A kind that a plugin brings; its name is `Kind.group`."""

    name: str
    group: str
    kind: str
    how: Kind
    owner: str
    version: str


class RegisterKind(Registrar[KindSpec]):
    """What `harness_register_kinds` gets."""

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
        """Register a kind of manifests, such as a CRD's.

        Args:
            group: its API group, such as `scheduling.volcano.sh`.
            kind: its kind, such as `Queue`.
            versions: the API versions that are understood; another one is a fault.
            read: reads an object; what is wrong becomes faults of its fields, and what is right is added to
                `draft.custom_resources("Queue.scheduling.volcano.sh")`, from where it comes into
                `cluster.custom_resources` under the same name.
            coverage: what is said of every field; of what is not modelled, or not known, users are warned.
            check: the rules between objects, asked once after all were read; kinds may share one.

        Raises:
            PluginError: the kind is one that harness reads itself, or that another plugin brings.
            RegistrationError: something of it cannot be registered; names the plugin.
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
                f"kind {kind}.{group} of plugin {self.owner.name!r} is read already, by harness itself",
                hint=f"leave the plugin out: --no-plugin {self.owner.name}",
            )
        how = Kind(known, read, coverage, check)
        self.registry.add(KindSpec(f"{kind}.{group}", group, kind, how, self.owner.name, self.owner.version))
