"""What befalls the operator's way to the API server during the soak, in turn."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from certroll_dev.demo.api import API
from control_plane import ControlPlane, b64, etcd, kill_api_server, start_api_server
from patience import persistently
from tcp_gate import Gate


class Faults:
    """One at a time; each ends with everything as it should be again."""

    def __init__(self, plane: ControlPlane, api: API, gate: Gate, accounts: list[Account], step: Callable[[], None]) -> None:
        self._plane = plane
        self._api = api
        self._gate = gate
        self._accounts = accounts
        self._step = step  # of the churn
        self.done: dict[str, int] = {}
        # An API server that starts costs as much as minutes of all the rest.
        often = [self.cut, self.stall, self.withdraw_token, self.cut, self.shut]
        self._turns: Iterator[Callable[[], None]] = itertools.cycle([*often, self.restart, *often, self.expire])

    def each_once(self) -> None:
        """So that nothing of what they bring about is new when growth is measured."""
        for fault in (self.cut, self.stall, self.withdraw_token, self.shut, self.restart, self.expire):
            self._do(fault)

    def next(self) -> None:
        self._do(next(self._turns))

    def _do(self, fault: Callable[[], None]) -> None:
        fault()
        self.done[fault.__name__] = self.done.get(fault.__name__, 0) + 1

    def cut(self) -> None:
        """In the middle of what a change sets off."""
        self._step()
        self._gate.cut()

    def stall(self) -> None:
        """Changes that come seconds late, all at once."""
        self._gate.stop()
        self._step()
        time.sleep(3)
        self._gate.flow()

    def shut(self) -> None:
        """Changes while nobody can see them."""
        self._gate.shut()
        self._step()
        self._step()
        time.sleep(2)
        self._gate.open()

    def withdraw_token(self) -> None:
        for account in self._accounts:
            account.renew_token()

    def restart(self) -> None:
        """The API server is gone without a word, and comes back with other watch caches."""
        kill_api_server(self._plane)
        start_api_server(self._plane)

    def expire(self) -> None:
        """What the watches knew is compacted, and in no cache any more: 410."""
        self._gate.shut()
        self._step()
        self._step()
        revision = etcd(self._plane, "put", key=b64("/soak"), value=b64("x"))["header"]["revision"]
        etcd(self._plane, "compaction", revision=revision, physical=True)
        self.restart()
        self._gate.open()


class Account:
    """A service account whose token is bound to a Secret, and so can be withdrawn."""

    def __init__(self, api: API, namespace: str, name: str, token_file: Path) -> None:
        self._api = api
        self._namespace = namespace
        self._name = name
        self._file = token_file
        self._numbers = itertools.count(1)
        self._bound = ""
        self.renew_token()

    def renew_token(self) -> None:
        """A new one is in the file, then the old one ends."""
        old, self._bound = self._bound, f"{self._name}-token-{next(self._numbers)}"
        name = self._bound
        binding = {"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": self._namespace, "name": name}}
        made = persistently(lambda: self._api.apply("secrets", binding))
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": name, "uid": made["metadata"]["uid"]}},
        }
        target = f"/api/v1/namespaces/{self._namespace}/serviceaccounts/{self._name}/token"
        answer = persistently(lambda: self._api.request("POST", target, request))
        half = self._file.with_suffix(".new")
        half.touch(mode=0o600)
        half.write_text(answer["status"]["token"])
        half.replace(self._file)
        if old:
            persistently(lambda: self._api.delete("secrets", self._namespace, old))
