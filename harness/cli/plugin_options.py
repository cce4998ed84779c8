"""Determines the option that a `--set` text sets, and the plugin that has this option."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.base.errors import OptionError
from harness.base.options import did_you_mean
from harness.plugins.registries import PolicySpec, ReaderSpec


def assign(
    settings: Iterable[str], policies: Sequence[tuple[PolicySpec, str]], readers: Iterable[ReaderSpec] = ()
) -> Mapping[str, dict[str, Any]]:
    """Returns the options of each replayed policy by its label, parsed from `[PREFIX.]KEY=VALUE` texts.

    A label is the name of a policy in this command. A prefix is a label, or the name of a plugin, which
    stands for all of its labels. A setting for a label overrides a setting for a plugin, which overrides a
    key without a prefix. If there are several settings of the same kind, the last one counts.

    If a key is an option of one of the readers, the error says so.

    Raises:
        OptionError: no plugin declares the key, or a text has a different form.
    """
    of_label = {label: (label,) for _, label in policies}
    of_plugin = {
        spec.name: tuple(label for other, label in policies if other.name == spec.name)
        for spec, _ in policies
    }
    ranked: list[tuple[int, tuple[str, ...], str, str]] = []
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise OptionError(
                f"--set {text!r} is not understood", hint="write --set KEY=VALUE or --set LABEL.KEY=VALUE"
            )
        prefix, _, name = key.rpartition(".")
        having = tuple(label for spec, label in policies if any(each.name == key for each in spec.options))
        if having:
            ranked.append((0, having, key, value))
        elif prefix in of_label:
            ranked.append((2, of_label[prefix], name, value))
        elif prefix in of_plugin:
            ranked.append((1, of_plugin[prefix], name, value))
        else:
            raise _unknown(text, key, policies, readers)
    chosen: dict[str, dict[str, Any]] = {label: {} for label in of_label}
    for _, labels, name, value in sorted(ranked, key=lambda each: each[0]):
        for label in labels:
            chosen[label][name] = value
    return chosen


def _unknown(
    text: str, key: str, policies: Sequence[tuple[PolicySpec, str]], readers: Iterable[ReaderSpec]
) -> OptionError:
    prefix, _, name = key.rpartition(".")
    known = [option.name for spec, _ in policies for option in spec.options]
    if prefix and name in known:
        labels = {label for _, label in policies} | {spec.name for spec, _ in policies}
        return OptionError(
            f"--set {text!r}: nothing is replayed as {prefix!r}", hint=did_you_mean(prefix, labels)
        )
    of_readers = [spec.name for spec in readers if any(option.name == key for option in spec.options)]
    if of_readers:
        hint = (
            f"a reader has this option ({', '.join(of_readers)}): harness trace convert TRACE OUT.parquet "
            f"--set {shlex.quote(text)}"
        )
    else:
        hint = did_you_mean(name, known)
    replayed = ", ".join(dict.fromkeys(spec.name for spec, _ in policies))
    return OptionError(
        f"--set {text!r}: no plugin of this replay ({replayed}) has an option {key!r}", hint=hint
    )
