"""Computes the requests that Kueue counts against quotas.

Kueue excludes or transforms some resources, and counts devices by class. The upstream code is
`dropExcludedResources` and `applyResourceTransformations` in pkg/workload/workload.go (KEP 2937),
`validateDeviceClassMappings` in pkg/config/validation.go (KEP 2941), and `IgnoreUndeclaredResources` in
pkg/scheduler/flavorassigner/flavorassigner.go (KEP 7513).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from fractions import Fraction
from typing import final

from harness.base.errors import InputError
from harness.base.units import format_amount, parse_quantity, round_up
from harness.base.values import Value, fixed
from harness.cluster.model import NEWER, frozen
from harness.cluster.yaml.fields import Fields, shown

_MOST_MAPPINGS, _MOST_CLASSES = 16, 8
"""The maximum number of mappings, and the maximum number of classes in a mapping, that Kueue accepts."""

_RETAIN, _REPLACE = "Retain", "Replace"
_IGNORE = "IgnoreUndeclared"


@final
@fixed()
class Transformation(Value):
    """A rule by which Kueue counts a requested resource as other resources.

    Attributes:
        source: the requested resource.
        replaces: whether the outputs replace the source. If True, the source itself doesn't count.
        multiply_by: the resource whose requested quantity multiplies the outputs, or "".
        outputs: maps a resource to the quantity that counts for each unit of the source. CPU is in cores.
    """

    source: str
    replaces: bool = False
    multiply_by: str = ""
    outputs: Mapping[str, Fraction] = field(default_factory=frozen)


@final
@fixed()
class Counting(Value):
    """The rules by which Kueue counts the requests of a pod.

    Attributes:
        excluded: prefixes of resource names. Resources with these prefixes don't count.
        transformations: the transformations, at most one for each source.
        devices: maps a DeviceClass to a resource. Each device of the class counts as one unit of the
            resource.
        measured: the classes for which Kueue counts a quantity inside each device, such as its memory, and
            not the device. harness doesn't know these quantities, so such devices count as nothing.
        ignores_undeclared: whether a resource that a ClusterQueue does not cover needs no quota there, if
            the feature gate `QuotaCheckStrategy` is on.
    """

    excluded: tuple[str, ...] = ()
    transformations: tuple[Transformation, ...] = ()
    devices: Mapping[str, str] = field(default_factory=frozen, metadata=NEWER)
    measured: tuple[str, ...] = field(default=(), metadata=NEWER)
    ignores_undeclared: bool = field(default=False, metadata=NEWER)

    def counted(
        self, requests: Mapping[str, int], *, exact: bool = True, keeps_inputs: bool = True
    ) -> Mapping[str, int]:
        """Returns the requests of one pod as Kueue counts them, in the units of the model.

        The sum of outputs is rounded, and is never negative. If a pod also requests an output resource
        directly, the outputs are added to that request.

        If `exact` is true, a fraction of a source yields a fraction of its outputs. Before PR 12953, Kueue
        rounded sources and multipliers up to whole units. If `keeps_inputs` is true, a source counts with its
        requested quantity if no output replaces it. Before PR 13986, Kueue also multiplied the source by the
        quantity of `multiply_by`.
        """
        if self.excluded:
            requests = {name: each for name, each in requests.items() if not name.startswith(self.excluded)}
        by_source = {each.source: each for each in self.transformations if each.source in requests}
        if not by_source:
            return requests
        found = {name: amount for name, amount in requests.items() if name not in by_source}
        outputs: dict[str, Fraction] = {}
        for name, rule in by_source.items():
            value = _quantity(name, requests[name])
            if rule.multiply_by in requests:
                factor = _quantity(rule.multiply_by, requests[rule.multiply_by])
                value *= factor if exact else _whole(factor)
            if not rule.replaces:
                found[name] = requests[name] if keeps_inputs else round_up(name, value)
            for output, each in rule.outputs.items():
                outputs[output] = outputs.get(output, Fraction()) + each * (value if exact else _whole(value))
        for name, value in outputs.items():
            found[name] = found.get(name, 0) + max(0, round_up(name, value))
        return found

    def sentences(self) -> Iterator[str]:
        """Yields sentences that explain how requests count."""
        if self.excluded:
            yield f"resources that begin with {', '.join(self.excluded)} do not count"
        for each in self.transformations:
            times = f" for each {each.multiply_by}" if each.multiply_by else ""
            counts = [f"{_written(name, value)} {name}{times}" for name, value in each.outputs.items()]
            counts += [] if each.replaces else ["itself"]
            yield f"1 {each.source} counts as {' and '.join(counts) or 'nothing'}"
        for device_class, resource in self.devices.items():
            counted = "nothing" if device_class in self.measured else f"1 {resource}"
            yield f"1 device of class {device_class} counts as {counted}"


def read_counting(fields: Fields) -> Counting:
    """Read the `resources` section of Kueue's Configuration."""
    found: dict[str, Transformation] = {}
    for item in fields.items("transformations"):
        source = item.string("input", required=True)
        if source in found:
            item.fault("input", f"{source} is transformed twice")
        replaces = item.choice("strategy", (_RETAIN, _REPLACE), _RETAIN) == _REPLACE
        found[source] = Transformation(source, replaces, item.string("multiplyBy"), _outputs(item))
    prefixes, strategy = fields.texts("excludeResourcePrefixes"), "quotaCheckStrategy"
    ignores = fields.choice(strategy, ("BlockUndeclared", _IGNORE), "BlockUndeclared") == _IGNORE
    if ignores and prefixes:
        fields.fault(strategy, f"cannot be {_IGNORE} together with excludeResourcePrefixes")
    return Counting(prefixes, tuple(found.values()), *_read_mappings(fields), ignores)


def _read_mappings(fields: Fields) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Returns the resource for each DeviceClass, and the classes that have `sources`.

    Only classes with `sources` can appear in several mappings.
    """
    mappings = fields.items("deviceClassMappings")
    if len(mappings) > _MOST_MAPPINGS:
        fields.fault("deviceClassMappings", f"has more than {_MOST_MAPPINGS} mappings")
    resources: set[str] = set()
    found: dict[str, str] = {}
    measured: dict[str, None] = {}
    for item in mappings:
        resource = item.string("name", required=True)
        if resource in resources:
            item.fault("name", f"{resource} is mapped twice")
        resources.add(resource)
        names = item.texts("deviceClassNames")
        if not 1 <= len(names) <= _MOST_CLASSES:
            item.fault("deviceClassNames", f"must name 1 to {_MOST_CLASSES} classes")
        sourced = bool(item.items("sources"))
        for number, name in enumerate(names):
            if name in found and not (sourced and name in measured and found[name] != resource):
                item.fault(f"deviceClassNames[{number}]", f"{name} is mapped to {found[name]} already")
            found.setdefault(name, resource)
            if sourced:
                measured[name] = None
    return frozen(found), tuple(measured)


def _outputs(item: Fields) -> Mapping[str, Fraction]:
    """Returns the quantity of each output resource. A negative quantity reduces the sum of the others."""
    table = item.child("outputs")
    found = {}
    for name in table:
        value = table.raw(name)
        if not isinstance(value, (str, int, float)):
            table.fault(name, f"must be a quantity, not {shown(value)}")
            continue
        try:
            found[name] = parse_quantity(value)
        except InputError as error:
            table.fault(name, str(error))
    return frozen(found)


def _quantity(resource: str, amount: int) -> Fraction:
    return Fraction(amount, 1000) if resource == "cpu" else Fraction(amount)


def _written(resource: str, value: Fraction) -> str:
    whole = value.denominator == 1
    return format_amount(resource, round_up(resource, value)) if whole else f"{float(value):g}"


def _whole(value: Fraction) -> Fraction:
    return Fraction(round_up("", value))
