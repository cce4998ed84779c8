"""Of every field of every kind it is said what a replay makes of it, and that is true."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from field_lists import (
    ListedField,
    ListedKind,
    listed_kinds,
    objects,
    read_kinds,
    said_of,
    together_with,
    values_of,
    with_value,
)
from hypothesis import given
from hypothesis import strategies as st
from more_examples import examples

from harness.base.errors import ClusterError
from harness.cluster.coverage.not_read import NOT_READ
from harness.cluster.coverage.verdicts import Verdict
from harness.cluster.kinds.table import KINDS
from harness.cluster.load import cluster_from
from harness.cluster.model import Cluster

LISTED = list(listed_kinds())
READ = read_kinds()


@pytest.mark.parametrize("listed", LISTED, ids=str)
def test_every_listed_field_is_accounted_for(listed: ListedKind) -> None:
    """It has a row of its own or is covered by one; a kind that is not read is covered as a whole."""
    if (listed.group, listed.kind) in NOT_READ:
        return
    missing = [field.path for field in listed.fields if said_of(listed.place, field.path) is None]
    assert not missing


def test_every_kind_that_is_read_has_a_list() -> None:
    """Those of ours apart, and with every version that is listed; of older groups by their present one."""
    kinds = {key for key in KINDS if key[0] not in ("harness", "componentconfig")}
    assert kinds <= {(each.group, each.kind) for each in LISTED}


UNLISTED = {
    "": "apiVersion kind",
    "Pod": "status spec.workloadRef",
    "ElasticQuotaTree": "status",
    "Cohort": "spec.parent",
    "Configuration": "controller health leaderElection metrics pprofBindAddress tls webhook",
    "KubeSchedulerConfiguration": "metadata disablePreemption preemptionAlgorithm algorithmSource "
    "bindTimeoutSeconds hardPodAffinitySymmetricWeight healthzBindAddress metricsBindAddress schedulerName "
    "profiles[].pluginConfig[].args",
}
"""Fields that the lists leave out: of every kind, of older versions, ACK's, and of all controllers."""


def test_what_is_said_is_said_of_fields_that_there_are() -> None:
    """A row for a misspelt field would say nothing of the one that is meant."""
    unknown = set()
    for group, kind in {(each.group, each.kind) for each in READ}:
        versions = [each for each in READ if (each.group, each.kind) == (group, kind)]
        listed = [field.path for each in versions for field in each.fields]
        other = tuple(f"{UNLISTED['']} {UNLISTED.get(kind, '')}".split())
        for row in KINDS[group, kind].coverage.rows:
            path = row.path.partition("{")[0].removesuffix("[]")
            there = any(each == path or each.startswith((f"{path}.", f"{path}[")) for each in listed)
            if not there and not path.startswith(other):
                unknown.add(f"{kind} {row.path}")
    assert not unknown


NOT_ALONE = {
    "metadata.name": "the name of an ElasticQuota without Koordinator's labels: its namespace counts",
    "metadata.namespace": "of an ElasticQuota with Koordinator's labels: its name counts",
    "spec.min": "of an ElasticQuota: max has to name the resource too",
    "spec.max": "of an ElasticQuota: what it does not name any more, min must not",
    "spec.root.min": "what the whole tree is guaranteed it is allowed",
    "spec.root.max": "what the whole tree is allowed it is guaranteed",
    "spec.root.children[].min": "its parent has to be guaranteed as much",
    "spec.root.children[].max": "its parent has to be allowed as much",
    "spec.root.children[].children[].name": "a quota with children has no namespaces",
    "spec.root.namespaces": "a quota with namespaces has no children",
    "spec.resourceGroups[].coveredResources": "the resources of each flavor have to be the same",
    "spec.resourceGroups[].flavors[].resources[].name": "the covered resources have to be the same",
    "ownerReferences[].kind": "an owner of that kind has to be there, or a Workload of it",
    "ownerReferences[].name": "likewise",
    "ownerReferences[].uid": "likewise",
    "olicy.basic": "a pod group has one policy",
    "transformations[].strategy": "a transformation has an input",
    "transformations[].multiplyBy": "likewise",
    "transformations[].outputs": "likewise",
    "deviceClassMappings[].name": "a mapping has classes",
    "deviceClassMappings[].deviceClassNames": "a mapping has a name",
    "admissionChecks[].name": "the check has to be in a state that is not ready",
    "admissionChecks[].message": "likewise",
    "admissionChecks[].lastTransitionTime": "likewise",
    "admissionChecks[].requeueAfterSeconds": "likewise",
    "initContainers[].restartPolicy": "one value counts",
    "matchFields[].key": "there is one field that can be matched",
}
"""Modelled fields that change the model only together with others, or have one value."""

OF_OWN_LABELS = ("matchLabelKeys", "mismatchLabelKeys")
"""They mean those of the pod's labels that it has."""


def outcome(before: Cluster, objects: list[dict[str, Any]]) -> tuple[bool, list[str], list[str]]:
    """Whether objects differ in the model from a cluster, what else is warned of, and with which faults."""
    try:
        after = cluster_from(objects, "test")
    except ClusterError as error:
        return False, [], [str(fault) for fault in error.faults]
    new = [each for each in after.warnings if each not in before.warnings]
    return after.digest != before.digest, new, []


@pytest.mark.parametrize("listed", READ, ids=str)
def test_what_is_said_to_count_counts(listed: ListedKind) -> None:
    """A modelled field changes the model, and another one is warned of with what is assumed."""
    usual, *others = objects(listed)
    cluster = cluster_from([usual, *others], "test")
    wrong = []
    for field in listed.fields:
        row = said_of(listed.place, field.path)
        assert row is not None
        if not field.leaf or row.verdict is Verdict.HARMLESS:
            continue
        first = together_with(listed, field)
        before = cluster if first == usual else cluster_from([first, *others], "test")
        answers = [
            outcome(before, [with_value(first, field.path, value), *others]) for value in values_of(field)
        ]
        if row.verdict is Verdict.ASSUMED:
            right = any(row.why in text for _, warnings, _ in answers for text in warnings)
        else:
            alone = not any(field.path.endswith(each) for each in NOT_ALONE)
            right = any(changes for changes, _, _ in answers) or not alone
        if not right:
            wrong.append((field.path, row.verdict.name, answers))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("listed", READ, ids=str)
def test_what_is_said_to_be_harmless_changes_nothing_and_is_not_warned_of(listed: ListedKind) -> None:
    """All such fields of an object at once."""
    usual, *others = objects(listed)
    before = cluster_from([usual, *others], "test")
    harmless = [
        field
        for field in listed.fields
        for row in (said_of(listed.place, field.path),)
        if field.leaf and row is not None and row.verdict is Verdict.HARMLESS
    ]
    changed = usual
    for field in harmless:
        changed = with_value(changed, field.path, values_of(field)[0])
    assert changed != usual
    assert outcome(before, [changed, *others]) == (False, [], [])


# --- dumps with something else at some places --------------------------------------------------------------


@cache
def fields_that_count() -> list[tuple[ListedKind, ListedField]]:
    """The fields that are more than harmless, or have one in them that is."""
    found = []
    for listed in READ:
        rows = {each.path: said_of(listed.place, each.path) for each in listed.fields}
        counting = [path for path, row in rows.items() if row and row.verdict is not Verdict.HARMLESS]
        leaves = {each.path for each in listed.fields if each.leaf}
        for field in listed.fields:
            within = (f"{field.path}.", f"{field.path}[")
            if any(each.startswith(within) for each in leaves):
                counts = any(each in leaves and each.startswith(within) for each in counting)
            else:
                counts = field.path in counting
            if counts:
                found.append((listed, field))
    return found


_JUNK = st.one_of(
    st.text(max_size=8),
    st.integers(-(2**33), 2**33),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["10%", "1Gi", "0x1", "2026-01-01T00:00:00Z", "Never", "-1", {}, [], [None], {"a": {}}]),
    st.lists(st.sampled_from(["a", 1, {"a": "b"}, None]), min_size=1, max_size=2),
    st.dictionaries(st.sampled_from(["a", "cpu"]), st.sampled_from(["1", 2, None, True]), max_size=2),
)


@examples(200)
@given(st.data())
def test_a_mutated_dump_changes_the_model_or_is_warned_of_or_refused_by_name(data: st.DataObject) -> None:
    """A field that counts, with any value: what asks for nothing else than before may say nothing."""
    fields = fields_that_count()
    listed, field = fields[data.draw(st.integers(0, len(fields) - 1))]  # Hypothesis hashes what it samples
    value = data.draw(st.one_of(st.sampled_from(values_of(field)), _JUNK))
    usual, *others = objects(listed)
    changed = with_value(usual, field.path, value)
    before = cluster_from([usual, *others], "test")
    changes, warnings, faults = outcome(before, [changed, *others])
    if faults:
        assert any(listed.kind in fault for fault in faults), faults
    elif not (changes or warnings):
        row = said_of(listed.place, field.path)
        assert row is not None
        if row.verdict is Verdict.HARMLESS:  # what is not named of a status that has fields which count
            return
        together = together_with(listed, field) != usual
        alone = not (together or any(field.path.endswith(each) for each in (*NOT_ALONE, *OF_OWN_LABELS)))
        assert _plain(changed) == _plain(usual) or value in row.usual or _says_nothing(value) or not alone


def _plain(value: Any) -> Any:
    """A value in which equal numbers are written alike."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    try:
        return value if isinstance(value, bool) else Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        return value


def _says_nothing(value: Any) -> bool:
    """Whether a value is empty, or has only what is empty in it."""
    if isinstance(value, dict):
        return all(each is None for each in value.values())
    return not value or value == [None]
