"""Executors on other machines: the workers of Dask, if it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from harness.base.errors import InputError

_INSTALL = "pip install 'harness-replay[dask]'"


@contextmanager
def dask_executor(address: str | None) -> Iterator[Executor | None]:
    """The workers of a Dask scheduler as an executor; None without an address.

    Raises:
        InputError: Dask is not installed, or no scheduler answers.
    """
    if address is None:
        yield None
        return
    try:
        connect: Any = import_module("distributed").Client
    except ImportError as error:
        raise InputError("dask.distributed is not installed", hint=_INSTALL) from error
    try:
        client = connect(address)
    except (OSError, ValueError) as error:
        raise InputError(
            f"no Dask scheduler answers at {address!r}: {error}", hint="dask scheduler prints its address"
        ) from error
    with client:
        yield client.get_executor()
