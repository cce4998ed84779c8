"""Determines the pod sets of a SparkApplication as Kueue does.

Kueue reads a few fields of the driver and the executors. Spark's own configuration, `cores` and
`memoryOverhead` affect the pods that Spark creates later, but not the Workload.

Source: `pkg/controller/jobs/sparkapplication` of Kueue. The defaults are those of the Spark operator's
webhook (`api/v1beta2/defaults.go`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.base.errors import InputError
from harness.base.units import parse_quantity
from harness.cluster.yaml.fields import Fields

_JAVA = {"k": "Ki", "m": "Mi", "g": "Gi", "t": "Ti", "p": "Pi"}
"""Maps Java's suffixes for memory, which may be followed by `b`, to the suffixes of Kubernetes."""

_MEMORY = "1g"
"""The memory of drivers and executors that do not specify their memory."""

_CONFIGURED = {
    "spark.executor.instances": ("executor", "instances"),
    **{
        f"spark.{prefix}{role}.{name}": (role, field)
        for role in ("driver", "executor")
        for prefix, name, field in (
            ("", "memory", "memory"),
            ("", "resource.gpu.amount", "gpu"),
            ("kubernetes.", "request.cores", "coreRequest"),
        )
    },
}
"""Maps each key of `sparkConf` to the equivalent fields that Kueue reads."""

_DYNAMIC = "spark.dynamicAllocation.enabled"

_COPIED = ("affinity", "initContainers", "nodeSelector", "priorityClassName", "tolerations")
"""The fields of drivers and executors that Kueue copies to their pods."""

_PLACING = (*_COPIED, "schedulerName", "topologySpreadConstraints")
"""The fields of a pod template that influence where pods fit but that Kueue ignores."""


def spark_pod_sets(job: Fields) -> Iterator[dict[str, Any]]:
    """Yields the pod sets of a SparkApplication.

    Errors in the manifest are added to the faults of `job`. A field that changes the pods is an error if
    Kueue does not read it.
    """
    spec = job.child("spec")
    _check(spec)
    yield _pod_set(spec, "driver", 1)
    yield _pod_set(spec, "executor", spec.child("executor").integer("instances", 1, least=1))


def _check(spec: Fields) -> None:
    mode = spec.string("mode") or "cluster"
    if mode != "cluster":
        spec.fault("mode", f"Kueue admits applications in cluster mode only, not in {mode!r}")
    dynamic = "Kueue admits a fixed number of executors; give executor.instances"
    if spec.child("dynamicAllocation").boolean("enabled"):
        spec.fault("dynamicAllocation.enabled", dynamic)
    if "nodeSelector" in spec:
        _not_read(spec, "nodeSelector", "driver.nodeSelector and executor.nodeSelector")
    if "batchScheduler" in spec:
        spec.fault("batchScheduler", "the pods of another scheduler are not modelled; leave this field out")
    configuration = spec.child("sparkConf")
    if configuration.string(_DYNAMIC).lower() == "true":
        configuration.fault(_DYNAMIC, dynamic)
    for key, (role, field) in _CONFIGURED.items():
        if key in configuration and field not in spec.child(role):
            _not_read(configuration, key, f"{role}.{field}")


def _pod_set(spec: Fields, role: str, count: int) -> dict[str, Any]:
    fields = spec.child(role)
    template = fields.child("template")
    inner = template.child("spec")
    for name in _PLACING:
        if name in inner:
            _not_read(inner, name, f"{role}.{name}" if name in _COPIED else "")
    for each in inner.items("containers"):
        if "resources" in each:
            _not_read(each, "resources", f"coreRequest, memory and gpu of the {role}")
    metadata = template.child("metadata")
    container = {"name": f"spark-kubernetes-{role}", "resources": _resources(spec, fields, role)}
    pods = {name: fields.raw(name) for name in _COPIED if name in fields}
    pods["containers"] = [container, *(fields.raw("sidecars") or ())]
    merged = {name: {**metadata.strings(name), **fields.strings(name)} for name in ("labels", "annotations")}
    return {"name": role, "count": count, "template": {"metadata": merged, "spec": pods}}


def _resources(spec: Fields, fields: Fields, role: str) -> Mapping[str, Mapping[str, Any]]:
    memory = _amount(fields, "memory")
    if memory is None and f"spark.{role}.memory" not in spec.child("sparkConf"):
        memory = _kubernetes_memory(_MEMORY)
    requests = {"cpu": _amount(fields, "coreRequest"), "memory": memory}
    limits: dict[str, Any] = {"cpu": _amount(fields, "coreLimit"), "memory": _amount(fields, "memoryLimit")}
    gpu = fields.child("gpu")
    name, quantity = gpu.string("name"), gpu.integer("quantity")
    if name and quantity > 0:
        limits[name] = quantity
    return {
        kind: {resource: amount for resource, amount in found.items() if amount is not None}
        for kind, found in (("requests", requests), ("limits", limits))
    }


def _amount(fields: Fields, name: str) -> str | None:
    """Returns a quantity, or None if it is absent or faulty. Memory may be in Java's form."""
    if name not in fields:
        return None
    text = fields.string(name)
    if name.startswith("memory"):
        text = _kubernetes_memory(text)
    try:
        if parse_quantity(text) >= 0:
            return text
        fields.fault(name, f"{text} must not be negative")
    except InputError as error:
        fields.fault(name, str(error))
    return None


def _kubernetes_memory(text: str) -> str:
    """Converts memory to Kubernetes' form. For example, `512m` and `512mb` become `512Mi`."""
    text = text.strip()
    number = text.lower().removesuffix("b")
    return number[:-1] + _JAVA[number[-1]] if number[-1:] in _JAVA else text


def _not_read(fields: Fields, name: str, instead: str) -> None:
    fields.fault(name, "Kueue does not read this field here" + (f"; give {instead}" if instead else ""))
