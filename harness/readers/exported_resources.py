"""Restores the names of resources that kube-state-metrics exports.

In the value of the label `resource`, kube-state-metrics writes `_` for each character that the name of
a label cannot have. Source: `SanitizeLabelName` in internal/store/utils.go of kubernetes/kube-state-metrics.
"""

from __future__ import annotations

import re

_NAMES = {"ephemeral_storage": "ephemeral-storage", "nvidia_com_gpu_shared": "nvidia.com/gpu.shared"}
_SLICE = re.compile(r"nvidia_com_mig_([0-9]+g)_([0-9]+gb)((?:_[a-z]+)*)")
_HUGE_PAGES = re.compile(r"hugepages_([0-9]+[KMG]i)")
_VENDORS = ("nvidia_com", "amd_com", "intel_com", "aliyun_com", "habana_ai", "google_com")


def resource_of(exported: str) -> str:
    """Returns the resource with an exported name.

    After the domain of a known vendor, each `_` becomes `-`, which is right for most resources. Names of RDMA
    devices have `_` themselves. For names that are not known here, the result is the exported name.
    """
    if found := _SLICE.fullmatch(exported):
        return f"nvidia.com/mig-{found[1]}.{found[2]}{found[3].replace('_', '.')}"
    if found := _HUGE_PAGES.fullmatch(exported):
        return f"hugepages-{found[1]}"
    if name := _NAMES.get(exported):
        return name
    for vendor in _VENDORS:
        if exported.startswith(f"{vendor}_"):
            return f"{vendor.replace('_', '.')}/{exported[len(vendor) + 1 :].replace('_', '-')}"
    return exported.replace("_", "/", 1) if exported.startswith("rdma_") else exported
