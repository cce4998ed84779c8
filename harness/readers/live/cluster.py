"""Connects to the API server of a cluster, with a kubeconfig or from within a pod, and lists its kinds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from harness.base.errors import InputError
from harness.base.json_text import mapping_of
from harness.readers.live.answers import UnreachedError
from harness.readers.live.http import HttpReader, RefusedError, live_module

_GROUP = "kueue.x-k8s.io"
_DEFAULT = Path("~/.kube/config")
_IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_PROXY = "kubectl can connect for you: run kubectl proxy, and give --server http://127.0.0.1:8001"
_ACCESS = "docs/recording.md shows the required role"


class Kind(NamedTuple):
    """A kind of objects.

    Attributes:
        name: the kind's name in manifests.
        api: the kind's API version.
        plural: the kind's name in paths.
    """

    name: str
    api: str
    plural: str
    namespaced: bool = True

    def path(self, namespace: str | None) -> str:
        """Returns the URL path of the kind's objects, in all namespaces or in one."""
        root = f"apis/{self.api}" if "/" in self.api else f"api/{self.api}"
        of_one = namespace and self.namespaced
        return f"{root}/namespaces/{namespace}/{self.plural}" if of_one else f"{root}/{self.plural}"


WORKLOAD, JOB, POD = "Workload", "Job", "Pod"
_JOBS = Kind(JOB, "batch/v1", "jobs")
_PODS = Kind(POD, "v1", "pods")
_ELASTIC = "scheduling.sigs.k8s.io"
_STANDING = (
    Kind("Node", "v1", "nodes", namespaced=False),
    Kind("ElasticQuota", f"{_ELASTIC}/v1alpha1", "elasticquotas"),
    Kind("ElasticQuotaTree", f"{_ELASTIC}/v1beta1", "elasticquotatrees"),
)
_OF_KUEUE = (
    Kind("ClusterQueue", "", "clusterqueues", namespaced=False),
    Kind("Cohort", "", "cohorts", namespaced=False),
    Kind("LocalQueue", "", "localqueues"),
)


class ApiServer(NamedTuple):
    """A cluster with read-only access."""

    address: str
    http: HttpReader


def connect(
    kubeconfig: Path | None = None,
    context: str | None = None,
    server: str | None = None,
    token_file: Path | None = None,
) -> ApiServer:
    """Connect to the cluster of a kubeconfig or an address, or to the cluster in which this process runs.

    Args:
        kubeconfig: the file. The default is `KUBECONFIG`, or else `~/.kube/config`, or else the service
            account of this pod.
        context: the context of the kubeconfig. The default is its current context.
        server: an address to use instead, such as the address of `kubectl proxy`.
        token_file: for an address, the file with a bearer token. It is read again when the server refuses
            the token.

    Raises:
        InputError: the extra `live` is not installed, or no usable configuration exists.
    """
    library = live_module("lightkube.config.kubeconfig")
    adapter = live_module("lightkube.config.client_adapter")
    models = live_module("lightkube.config.models")
    try:
        if server is not None:
            user = models.User(token_file=None if token_file is None else str(token_file))
            config = library.KubeConfig.from_one(cluster=models.Cluster(server=server), user=user)
        else:
            config = _config(library, kubeconfig)
        single = config.get(context)
        if single.user is None:
            single = single._replace(user=models.User())
        client = adapter.Client(single, adapter.ConnectionParams(timeout=None))
    except InputError:
        raise
    except Exception as error:  # a library's errors about the file, whose texts may quote the file
        given = server or kubeconfig or os.environ.get("KUBECONFIG") or _DEFAULT
        said = f": {error}" if type(error).__name__ == "ConfigError" else ""
        raise InputError(f"{given} cannot be used to reach a cluster{said}", hint=_PROXY) from error
    return ApiServer(single.cluster.server, HttpReader(client, _status))


def _config(library: Any, kubeconfig: Path | None) -> Any:
    named = os.environ.get("KUBECONFIG", "")
    if kubeconfig is None and os.pathsep in named.strip(os.pathsep):
        raise InputError(
            "KUBECONFIG names several files",
            hint="merge them: run kubectl config view --flatten --raw > one.yaml, and give "
            "--kubeconfig one.yaml",
        )
    path = kubeconfig or (Path(named.strip(os.pathsep)) if named else _DEFAULT)
    if kubeconfig is None and not named and not path.expanduser().is_file():
        if (_IN_CLUSTER / "token").is_file():
            return library.KubeConfig.from_service_account()
        raise InputError(
            f"there is no kubeconfig: neither --kubeconfig nor KUBECONFIG nor {_DEFAULT}, and this is not a "
            "pod",
            hint=f"give --kubeconfig FILE; or {_PROXY}",
        )
    if not path.expanduser().is_file():
        raise InputError(f"there is no kubeconfig {path}", hint="give --kubeconfig FILE")
    return library.KubeConfig.from_file(path)


def kinds_of(server: ApiServer, namespace: str | None) -> tuple[list[Kind], list[str]]:
    """Returns the kinds that can be recorded, and sentences about the other kinds.

    Each kind is requested once, so that missing permissions are reported immediately. A trace needs
    Workloads, Jobs and Pods. Quotas and nodes are optional.

    Raises:
        InputError: the server cannot be reached, or does not permit reading Workloads, Jobs or Pods.
    """
    kinds, notes = [_JOBS, _PODS], []
    workloads = _workloads(server)
    if workloads is None:
        notes.append(f"the cluster has no {_GROUP}: Kueue is not installed, so no Workloads are recorded")
    else:
        kinds.insert(0, workloads)
    for kind in kinds:
        _answer(server, kind.path(namespace), {"limit": "1"}, kind.plural)
    of_kueue = [] if workloads is None else [each._replace(api=workloads.api) for each in _OF_KUEUE]
    for kind in (*of_kueue, *_STANDING):
        try:
            _answer(server, kind.path(namespace), {"limit": "1"}, kind.plural)
        except _NoneError:
            continue  # not every cluster has all of these kinds
        except _ForbiddenError as error:
            notes.append(f"{kind.plural} are not recorded: {error.message}; {_ACCESS}")
        else:
            kinds.append(kind)
    return kinds, notes


def _workloads(server: ApiServer) -> Kind | None:
    try:
        group = _answer(server, f"apis/{_GROUP}", {}, f"the API group {_GROUP}")
    except _NoneError:
        return None
    api = mapping_of(group, "preferredVersion").get("groupVersion")
    return Kind(WORKLOAD, api if isinstance(api, str) else f"{_GROUP}/v1beta2", "workloads")


class _NoneError(InputError):
    """The server does not have the resource."""


class _ForbiddenError(InputError):
    """The server forbids reading the resource."""


def _answer(server: ApiServer, path: str, params: Mapping[str, str], what: str) -> Any:
    try:
        return server.http.get(path, params)
    except UnreachedError as error:
        raise InputError(
            f"{server.address}: {error}", hint="is it the right cluster? check with kubectl cluster-info"
        ) from error
    except RefusedError as error:
        message = f"{server.address}: {what} cannot be read: {error}"
        if error.status == 404:
            raise _NoneError(message, hint="is it the address of a cluster's API server?") from error
        if error.status == 403:
            raise _ForbiddenError(message, hint=_ACCESS) from error
        hints = {401: f"the token or certificate is invalid or has expired. {_PROXY}"}
        raise InputError(message, hint=hints.get(error.status)) from error
    except InputError:
        raise
    except Exception as error:
        # A program that provides tokens failed. The error may quote the program's output.
        said = str(error).partition(":")[0] if type(error).__name__ == "ConfigError" else type(error).__name__
        raise InputError(f"no credentials for {server.address}: {said}", hint=_PROXY) from error


def _status(answer: Any) -> str:
    return str(answer.get("message") or "") if isinstance(answer, Mapping) else ""
