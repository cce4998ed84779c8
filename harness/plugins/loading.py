"""Finds plugins, loads them, and stores their registrations with their owners.

`load()` returns an object that callers pass to other functions. There is no global manager, so tests and
notebooks can have several of these objects.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pluggy

from harness.base.errors import HarnessError, PluginError, RegistrationError, is_of_plugin, told
from harness.base.options import did_you_mean
from harness.base.values import Value, fixed
from harness.plugins import hookspecs
from harness.plugins.registries import MetricSpec, Owner, PolicySpec, ReaderSpec, Register, Registry, SpecT

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from harness.cluster.kinds.kind import Kind
    from harness.plugins.conformance import ConformanceSpec
    from harness.plugins.kind import KindSpec
    from harness.plugins.section import SectionSpec

GROUP = "harness"
_DISTRIBUTION = "harness-replay"

Installed: TypeAlias = "list[tuple[EntryPoint, str, str]]"
"""Entry points with their distributions and versions."""

_SETTLED = 10**10  # ns; a distribution that is just being installed may be incomplete

_LINES = 3  # of the reason why a plugin doesn't load; pluggy names an unknown argument in its last line

_found: dict[tuple[object, ...], Installed] = {}
"""Maps the import folders, and their state when they were last read, to the entry points in them."""


@fixed()
class PluginInfo(Value):
    """An installed plugin, with its origin and its hooks. If loading it failed, `error` is the reason."""

    name: str
    module: str
    distribution: str
    version: str
    hooks: tuple[str, ...] = ()
    error: str | None = None


@fixed(slots=False)
class Plugins(Value):
    """All loaded plugins. `how` contains the arguments of the call of `load` that loaded them."""

    hooks: pluggy.HookRelay
    policies: Registry[PolicySpec] = field(default_factory=lambda: Registry("policy"))
    readers: Registry[ReaderSpec] = field(default_factory=lambda: Registry("reader"))
    metrics: Registry[MetricSpec] = field(default_factory=lambda: Registry("metric"))
    sections: Registry[SectionSpec] = field(default_factory=lambda: Registry("section"))
    conformance: Registry[ConformanceSpec] = field(default_factory=lambda: Registry("conformance component"))
    kinds: Registry[KindSpec] = field(default_factory=lambda: Registry("kind"))
    found: tuple[PluginInfo, ...] = field(default=())
    left_out: tuple[str, ...] = field(default=())
    how: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> tuple[Callable[..., Plugins], tuple[Mapping[str, Any]]]:
        """Pickle only the arguments of `load`, because another process loads the plugins again."""
        return _loaded, (self.how,)

    @property
    def registries(self) -> tuple[Registry[Any], ...]:
        """All registrations, grouped by kind."""
        return self.policies, self.readers, self.kinds, self.metrics, self.sections, self.conformance

    def policy(self, name: str) -> PolicySpec:
        """Returns the policy with this name.

        Raises:
            PluginError: no policy has this name. The message suggests a name and lists the plugins that
                failed to load.
        """
        return self._required(self.policies, name)

    def reader(self, name: str) -> ReaderSpec:
        """Returns the trace reader with this name.

        Raises:
            PluginError: no reader has this name.
        """
        return self._required(self.readers, name)

    def _required(self, registry: Registry[SpecT], name: str) -> SpecT:
        spec = registry.get(name)
        if spec is None:
            away = f"; left out: {', '.join(self.left_out)}" if self.left_out else ""
            broken = "".join(
                f"\nplugin {info.name!r} failed to load: {info.error}" for info in self.found if info.error
            )
            message = f"there is no {registry.kind} {name!r}{away}{broken}"
            from harness.base.build import mixed  # needed only for the error

            if broken and (why := mixed()) is not None:
                raise PluginError(
                    f"{message}\n{why}",
                    hint="in a checkout, call `harness`, not `python -m harness`, or set PYTHONSAFEPATH=1",
                )
            theirs = [each.name for each in registry if each.owner == name]
            if theirs:
                raise PluginError(message, hint=f"the plugin {name} registers {' and '.join(theirs)}")
            raise PluginError(message, hint=did_you_mean(name, registry.names()))
        return spec


def load(
    *, only: Iterable[str] | None = None, block: Iterable[str] = (), extra: Mapping[str, object] | None = None
) -> Plugins:
    """Load the installed plugins.

    A plugin is left out if it can't be imported, misspells the name of a hook, makes an invalid registration,
    or raises an error while it registers. `found` contains the reason.

    Args:
        only: the names of the entry points to load. All others are ignored.
        block: the names of the entry points to leave out.
        extra: maps names to plugin objects, which are registered like installed plugins. Notebooks and tests
            use this argument.

    Raises:
        PluginError: two plugins register the same name, or a name in `only` or `block` is not installed.
    """
    how = {"only": None if only is None else tuple(only), "block": tuple(block), "extra": dict(extra or {})}
    return _loaded(how)


def _loaded(how: Mapping[str, Any]) -> Plugins:
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    loaded = Plugins(manager.hook)
    found: list[PluginInfo] = []
    for candidate in _candidates(how["only"], set(how["block"]), how["extra"]):
        info = candidate.info
        try:
            plugin = candidate.load()
            manager.register(plugin, info.name)
            manager.check_pending()
            hooks = tuple(sorted(caller.name for caller in manager.get_hookcallers(plugin) or ()))
            _check_marks(plugin, hooks)
            _register(plugin, info, loaded)
        except BaseException as error:
            if not _fails_alone(error):
                raise
            found.append(_without(info, error, manager, loaded))
        else:
            found.append(replace(info, hooks=hooks))
    return replace(loaded, found=tuple(found), left_out=tuple(sorted(set(how["block"]))), how=how)


def _check_marks(plugin: object, hooks: Container[str]) -> None:
    for name in vars(hookspecs):
        if name.startswith("harness_") and name not in hooks and callable(getattr(plugin, name, None)):
            raise RegistrationError(f"its function {name} lacks the decorator @harness.hookimpl")


def _without(
    info: PluginInfo, error: BaseException, manager: pluggy.PluginManager, loaded: Plugins
) -> PluginInfo:
    if manager.has_plugin(info.name):
        manager.unregister(name=info.name)
    for registry in loaded.registries:
        registry.drop_owner(info.name)
    return replace(info, error=_reason(error))


def third_parties() -> set[str]:
    """Returns the names of installed plugins from other distributions without loading them."""
    return {entry.name for entry, distribution, _ in installed(GROUP) if distribution != _DISTRIBUTION}


@cache
def own_modules() -> tuple[str, ...]:
    """Returns the modules of harness's own plugins without loading them."""
    return tuple(
        sorted(entry.module for entry, distribution, _ in installed(GROUP) if distribution == _DISTRIBUTION)
    )


@cache
def installed_kinds() -> Mapping[tuple[str, str], Kind]:
    """Returns the kinds that installed plugins add, as a mapping from pairs of API group and kind.

    A plugin that can't be loaded adds no kinds. `load` reports the reason.

    Raises:
        PluginError: two plugins add the same kind.
    """
    from harness.plugins.kind import KindSpec

    kinds: Registry[KindSpec] = Registry("kind")
    for candidate in _candidates(None, set(), {}):
        info, manager = candidate.info, pluggy.PluginManager(GROUP)
        manager.add_hookspecs(hookspecs)
        try:
            manager.register(candidate.load(), info.name)
            register = Register(Owner(info.name, info.version, info.module), kinds, KindSpec)
            manager.hook.harness_register_kinds(register=register)
        except BaseException as error:
            if not _fails_alone(error):
                raise
            kinds.drop_owner(info.name)
    return {spec.key: spec.how for spec in kinds}


class _Candidate(NamedTuple):
    info: PluginInfo
    load: Callable[[], object]


def _candidates(only: Iterable[str] | None, block: set[str], extra: Mapping[str, object]) -> list[_Candidate]:
    """Returns all loadable plugins by name, so that the order of installation has no effect."""
    candidates = [
        _Candidate(PluginInfo(name, type(plugin).__name__, "", ""), lambda plugin=plugin: plugin)  # type: ignore[misc]
        for name, plugin in extra.items()
    ]
    candidates += [
        _Candidate(PluginInfo(entry.name, entry.value, distribution, version), entry.load)
        for entry, distribution, version in installed(GROUP)
    ]
    candidates.sort(key=lambda candidate: (candidate.info.name, candidate.info.module))
    names = {candidate.info.name for candidate in candidates}
    wanted = names if only is None else set(only)
    for name in sorted((wanted | block) - names):
        raise PluginError(f"no installed plugin has the name {name!r}", hint=did_you_mean(name, names))
    return [candidate for candidate in candidates if candidate.info.name in wanted - block]


def _register(plugin: object, info: PluginInfo, loaded: Plugins) -> None:
    from harness.plugins.conformance import ConformanceSpec
    from harness.plugins.kind import KindSpec
    from harness.plugins.section import SectionSpec

    owner = Owner(info.name, info.version, info.module if info.distribution else "")
    hooks = loaded.hooks
    for hook, register in (
        (hooks.harness_register_policies, Register(owner, loaded.policies, PolicySpec)),
        (hooks.harness_register_readers, Register(owner, loaded.readers, ReaderSpec)),
        (hooks.harness_register_kinds, Register(owner, loaded.kinds, KindSpec)),
        (hooks.harness_register_metrics, Register(owner, loaded.metrics, MetricSpec)),
        (hooks.harness_register_sections, Register(owner, loaded.sections, SectionSpec)),
        (hooks.harness_register_conformance, Register(owner, loaded.conformance, ConformanceSpec)),
    ):
        for implementation in hook.get_hookimpls():
            if implementation.plugin is plugin:
                implementation.function(*((register,) if implementation.argnames else ()))


def _fails_alone(error: BaseException) -> bool:
    """Returns True if an error disables only its plugin. A name that is registered twice stops loading."""
    if isinstance(error, PluginError):
        return isinstance(error, RegistrationError)
    return is_of_plugin(error) or isinstance(error, HarnessError)


def _reason(error: BaseException) -> str:
    text = error.message if isinstance(error, RegistrationError) else told(error)
    return "; ".join(text.splitlines()[:_LINES])


def installed(group: str) -> Installed:
    """Returns all entry points of a group, and keeps them until a distribution is installed or removed.

    Reading the metadata of all distributions takes half of the time for loading plugins.
    """
    places = [_stands(place) for place in sys.path]
    key = (group, *places)
    if key in _found:
        return _found[key]
    found = _look(group)
    if time.time_ns() - max((changed for _, changed, _ in places), default=0) > _SETTLED:
        _found.clear()
        _found[key] = found
    return found


def _stands(place: str) -> tuple[str, int, int]:
    """Returns the state of a folder or archive, which changes when a distribution is added or removed."""
    try:
        about = os.stat(place or os.curdir)  # noqa: PTH116 - texts, as in sys.path
    except OSError:
        return place, 0, 0
    return place, about.st_mtime_ns, about.st_ino


def _look(group: str) -> Installed:
    from importlib.metadata import entry_points  # takes longer to import than all of help

    entries = {(entry.name, entry.value): entry for entry in entry_points(group=group)}
    about: dict[int, tuple[str, str]] = {}  # each access to a distribution reads all of its metadata
    found = []
    for entry in entries.values():
        if entry.dist is not None:
            if id(entry.dist) not in about:
                metadata = entry.dist.metadata
                about[id(entry.dist)] = metadata["Name"], metadata["Version"]
            found.append((entry, *about[id(entry.dist)]))
    return found
