"""One namespace attacks in all ways at once; another one goes on with its rotations, and nobody restarts the operator.

The release build, whose memory is what a Deployment limits. With CERTROLL_LONG ten minutes."""

from __future__ import annotations

import base64
import itertools
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from control_plane import ROOT, ControlPlane
from floods import flood
from operators import Operator
from paper_pods import PaperPods
from rotations import API, Lane, direct, leaves

sys.path[:0] = [str(ROOT / "hack" / "lib")]

from certroll_dev.demo.api import APIError  # noqa: E402

Object = dict[str, Any]

PROGRAM = Path(os.environ.get("CERTROLL_BUILDS", ROOT / "build")) / "release" / "bin" / "certroll-operator"
SECONDS = 600 if os.environ.get("CERTROLL_LONG") else 60
LIMIT = 128 << 20  # manifests/base/deployment.yaml
CHAIN, CROSSED = 10, 90  # beyond what limits.md allows above a leaf
EXPENSIVE, KEYS, STUCK = 12, 12_000, 60


def _openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True)


def _crossed(folder: Path) -> Object:
    """A leaf whose intermediate many CAs have signed, all with one key of P-521."""
    folder.mkdir()
    key = str(folder / "key")
    _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-521", "-out", key)
    _openssl("pkey", "-in", key, "-pubout", "-out", str(folder / "public"))
    (folder / "ca.ext").write_text("basicConstraints=critical,CA:TRUE")

    def issue(pair: tuple[str, str]) -> bytes:
        name, issuer = pair
        mine = folder / f"{name}-{issuer}"
        _openssl("req", "-x509", "-key", key, "-subj", f"/CN={issuer}", "-days", "9", "-out", str(folder / f"{issuer}.ca"))
        extension = [] if name == "leaf" else ["-extfile", str(folder / "ca.ext")]
        _openssl("req", "-new", "-key", key, "-subj", f"/CN={name}", "-out", f"{mine}.csr")
        _openssl("x509", "-req", "-in", f"{mine}.csr", "-CA", str(folder / f"{issuer}.ca"), "-CAkey", key, "-days", "9", "-out", f"{mine}.crt", *extension)
        return Path(f"{mine}.crt").read_bytes()

    above = [(f"i{at}", f"i{at + 1}") for at in range(CHAIN)] + [(f"i{CHAIN}", f"x{at}") for at in range(CROSSED)]
    with ThreadPoolExecutor(4) as pool:
        leaf, *others = pool.map(issue, [("leaf", "i0"), *above])
    content = {"tls.crt": leaf, "tls.key": Path(key).read_bytes(), "ca.crt": b"".join(others)}
    return {name: base64.b64encode(value).decode() for name, value in content.items()}


class Attacker:
    """All that somebody with the rights of a namespace can write, again and again."""

    def __init__(self, api: API, namespace: str, material: Object, good: Sequence[Object]) -> None:
        self.api, self.namespace = api, namespace
        self.writes = 0
        self._material, self._good = material, good
        self._random = random.Random(20)
        self._end = threading.Event()

    def prepare(self) -> None:
        for number in range(EXPENSIVE):
            self._secret(f"expensive-{number}", self._material)
            self._policy(f"expensive-{number}", [f"expensive-{number}"], "nothing")
        self._secret("wide", {f"k{number}": "" for number in range(KEYS)}, "Opaque")
        self._policy("wide", ["wide"], "nothing")
        for number in range(STUCK):
            Lane(self.api, self.namespace, f"stuck-{number}", list(self._good)).create()

    def _secret(self, name: str, data: Object, kind: str = "kubernetes.io/tls") -> None:
        metadata = {"name": name, "namespace": self.namespace}
        self.api.apply("secrets", {"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": metadata, "data": data})

    def _policy(self, name: str, secrets: list[str], target: str) -> None:
        consumer = {"name": "c", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}}
        spec = {"secrets": [{"name": each} for each in secrets], "consumers": [consumer]}
        metadata = {"name": name, "namespace": self.namespace}
        self.api.apply("certrotationpolicies", {"apiVersion": "certroll.dev/v1alpha1", "kind": "CertRotationPolicy", "metadata": metadata, "spec": spec})

    @contextmanager
    def under_way(self, threads: int = 4) -> Iterator[None]:
        running = [threading.Thread(target=self._go_on, daemon=True) for _ in range(threads)]
        for each in running:
            each.start()
        try:
            yield
        finally:
            self._end.set()
            for each in running:
                each.join()

    def _go_on(self) -> None:
        ways: list[Callable[[int], None]] = [self._touch_expensive, self._touch_wide, self._touch_policy, self._change_stuck, self._swing]
        for turn in itertools.count():
            if self._end.wait(0.02):
                return
            with suppress(APIError):
                self._random.choice(ways)(turn)
                self.writes += 1

    def _touch(self, kind: str, name: str, turn: int) -> None:
        self.api.merge(kind, self.namespace, name, {"metadata": {"annotations": {"turn": f"{turn}-{self._random.random()}"}}})

    def _touch_expensive(self, turn: int) -> None:
        """As other material: it is read anew."""
        name = f"expensive-{self._random.randrange(EXPENSIVE)}"
        extra = base64.b64encode(str(turn).encode()).decode()
        self.api.merge("secrets", self.namespace, name, {"data": {"extra": extra}})

    def _touch_wide(self, turn: int) -> None:
        if turn % 20 == 0:  # 1 MB each
            self._touch("secrets", "wide", turn)

    def _touch_policy(self, turn: int) -> None:
        self._touch("certrotationpolicies", f"expensive-{self._random.randrange(EXPENSIVE)}", turn)

    def _change_stuck(self, turn: int) -> None:
        """Rollouts that never end: nobody makes these pods ready."""
        name = f"stuck-{self._random.randrange(STUCK)}"
        self.api.merge("secrets", self.namespace, name, {"data": self._good[turn % len(self._good)]})

    def _swing(self, turn: int) -> None:
        """From expensive to good, and back."""
        self.api.merge("secrets", self.namespace, "expensive-0", {"data": (self._good[0], self._material)[turn % 2]})


class Health:
    """Asks like a kubelet, once a second; a thread of its own."""

    def __init__(self, operator: Operator) -> None:
        self.seconds: list[float] = []
        self.failures: list[str] = []
        self._operator = operator
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)

    def __enter__(self) -> Health:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _ask(self) -> None:
        while not self._end.wait(1.0):
            began = time.monotonic()
            for page in ("/healthz", "/readyz"):
                status, body = self._operator.get(page, "--max-time", "5", page="/healthz")
                if status != 200:
                    self.failures.append(f"{page}: {status} {body}")
            self.seconds.append(time.monotonic() - began)


def _resident(pid: int) -> tuple[int, int]:
    """Bytes now, and the most so far."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return tuple(int(lines[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))  # type: ignore[return-value]


def _rotations(lane: Lane, seconds: float, least: int) -> list[float]:
    took, end = [], time.monotonic() + seconds
    while len(took) < least or time.monotonic() < end:
        began = time.monotonic()
        lane.rotate(timeout=120)
        took.append(time.monotonic() - began)
    return took


@pytest.fixture
def place(control_plane: ControlPlane, namespace: str) -> Iterator[tuple[API, str, str]]:
    """The quiet namespace and the hostile one."""
    hostile = f"{namespace}-hostile"
    control_plane.kubectl("create", "namespace", hostile)
    with direct(control_plane) as api:
        yield api, namespace, hostile
    control_plane.kubectl("delete", "namespace", hostile, "--wait=false")


@pytest.mark.timeout(SECONDS + 900)
def test_a_rotation_elsewhere_goes_on(
    control_plane: ControlPlane, place: tuple[API, str, str], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    api, quiet, hostile = place
    good = leaves(3)
    lane = Lane(api, quiet, "lane", good)
    lane.create()
    attacker = Attacker(api, hostile, _crossed(tmp_path / "crossed"), good)
    with ExitStack() as stack:
        stack.enter_context(PaperPods(api, [quiet]))
        operator = Operator(
            control_plane, quiet, "operator", control_plane.kubeconfig, tmp_path, f"--operator-namespace={quiet}", "--health-probe-bind-address=127.0.0.1:0",
            program=PROGRAM, everywhere=True, extra_environment={"GLIBC_TUNABLES": "glibc.malloc.tcache_max=128"},
        )  # fmt: skip
        stack.callback(operator.end)
        operator.wait_line("became leader")
        lane.wait_settled()
        before = _rotations(lane, 10, least=5)
        lease = control_plane.get("lease", "certroll-operator", "-n", quiet)["spec"]

        attacker.prepare()
        port = next(int(line["port"]) for line in operator.lines("serving") if "/healthz" in line["pages"])
        with attacker.under_way(), flood(port, "a byte each 9 s", 1600), Health(operator) as health:
            under = _rotations(lane, SECONDS, least=5)
        now, most = _resident(operator.process.pid)
        costly = [each for each in api.list("certrotationpolicies", hostile) if "TooCostly" in str(each.get("status", {}))]
        assert operator.process.poll() is None
        after = control_plane.get("lease", "certroll-operator", "-n", quiet)["spec"]
        operator.signal(signal.SIGTERM)
        assert operator.wait() == 0
    told = (
        f"{attacker.writes} hostile writes in {SECONDS} s; a rotation took {statistics.median(before):.2f} s before, "
        f"{statistics.median(under):.2f} s then (worst {max(under):.2f} s, {len(under)} of them); "
        f"{len(health.seconds)} probes, the slowest {max(health.seconds):.2f} s; {now >> 20} MiB resident, {most >> 20} MiB at most"
    )
    print(told)
    record_property("told", told)
    assert costly, "the attack was none"
    assert attacker.writes > SECONDS
    assert health.failures == []
    assert most < LIMIT
    assert (after["holderIdentity"], after["leaseTransitions"]) == (lease["holderIdentity"], lease["leaseTransitions"])
    assert lane.complaint() is None
