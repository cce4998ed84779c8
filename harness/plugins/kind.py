"""Defines how plugins add kinds of manifests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from harness.base.errors import PluginError
from harness.base.names import is_word
from harness.base.values import Value, fixed
from harness.cluster.kinds.kind import Kind, Knob
from harness.plugins.registries import Registrar

if TYPE_CHECKING:
    from harness.cluster.coverage.verdicts import Coverage
    from harness.cluster.draft import Draft
    from harness.cluster.yaml.fields import Fields


@fixed()
class KindSpec(Value):
    """A kind of manifests that a plugin adds. The name of the registration is `Kind.group`."""

    name: str
    group: str
    kind: str
    how: Kind
    owner: str
    version: str


class RegisterKind(Registrar[KindSpec]):
    """Registers a kind of manifests; passed to `harness_register_kinds`."""

    def __call__(
        self,
        group: str,
        kind: str,
        *,
        versions: Iterable[str],
        read: Callable[[Fields, Draft], None],
        coverage: Coverage,
        check: Callable[[Draft], None] | None = None,
        knobs: Iterable[Knob] = (),
    ) -> None:
        """Register a kind of manifests, such as the kind of a CRD.

        Args:
            group: the API group, such as `scheduling.volcano.sh`.
            kind: the name of the kind, such as `Queue`.
            versions: the supported API versions. Any other version is a fault.
            read: a function that reads an object. It adds faults to the object's fields, and adds the object
                to `draft.custom_resources("Queue.scheduling.volcano.sh")`. The object is then in
                `cluster.custom_resources` under the same name.
            coverage: a verdict on every field. harness warns users about fields that are unknown or not
                modelled.
            check: a function that checks rules between objects. harness calls it once, after it has read all
                objects. Several kinds can share the same check.
            knobs: numbers in an object's manifest that users can vary by name, such as `spec.weight`.

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
        given: Any = knobs
        named = tuple(given) if isinstance(given, Iterable) else (given,)
        if not all(isinstance(each, Knob) and each.by in ("", "resource") for each in named):
            about.refuse('knobs must be Knobs of one value (by="") or of resources (by="resource")')
        how = Kind(known, read, coverage, check, named)
        self.registry.add(KindSpec(f"{kind}.{group}", group, kind, how, self.owner.name, self.owner.version))
