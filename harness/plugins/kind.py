"""Defines how plugins add kinds of manifests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from harness.base.errors import PluginError
from harness.base.names import is_word
from harness.base.values import fixed
from harness.cluster.kinds.kind import Kind, Knob
from harness.plugins.registries import Registration, Spec


@fixed()
class KindSpec(Spec):
    """A kind of manifests, such as a CRD's kind, as a plugin registers it with `harness_register_kinds`.

    The name consists of the kind and its API group, such as `Queue.scheduling.volcano.sh`. The mappings
    `draft.custom_resources` and `cluster.custom_resources` contain the objects of the kind under this name.

    Attributes:
        how: the versions of the kind, its reader, the verdicts on its fields, and its knobs. A knob is a
            number in a manifest that users can vary.
    """

    how: Kind

    @property
    def key(self) -> tuple[str, str]:
        """The API group, which is "" for the core group, and the kind."""
        kind, _, group = self.name.partition(".")
        return group, kind

    def checked(self, about: Registration) -> KindSpec:
        """Returns the specification after a check.

        Raises:
            PluginError: harness itself already reads the kind.
            RegistrationError: a field has a wrong type or value. The message names the plugin.
        """
        from harness.cluster.coverage.verdicts import Coverage
        from harness.cluster.kinds.table import OURS

        kind, _, group = str(self.name).partition(".")
        if type(self.name) is not str or not is_word(kind) or not (is_word(group) or group == ""):
            about.refuse("group and kind must be words, such as scheduling.volcano.sh and Queue")
        how = self.how
        if not isinstance(how, Kind):
            about.refuse(f"'how' must be a Kind, but is {how!r}")
        known = about.several("versions", how.versions)
        about.functions(read=how.read)
        about.functions_or_none(check=how.check, write=how.write)
        if not isinstance(how.coverage, Coverage):
            about.refuse("coverage must be a Coverage")
        if (group, kind) in OURS:
            raise PluginError(
                f"kind {self.name} of plugin {about.owner!r} is a built-in kind of harness",
                hint=f"leave the plugin out with --no-plugin {about.owner}",
            )
        given: Any = how.knobs
        named = tuple(given) if isinstance(given, Iterable) else (given,)
        if not all(isinstance(each, Knob) and each.by in ("", "resource") for each in named):
            about.refuse('the knobs must be Knob objects with by="" or by="resource"')
        return replace(self, how=replace(how, versions=known, knobs=named))
