"""Minutes of churn and faults on a real API server: nothing is missed, nothing done twice, and nothing grows.

The operator as users have it (the release build) is watched from second to second. Beside it one with AddressSanitizer and one
with ThreadSanitizer, each for a namespace of its own, go through the same, and in the end must have had nothing to say: no race,
no leak. Nothing here depends on how fast the machine is: the soak runs beside other tests (hack/test).
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import control_plane as planes
import samples
import sanitizers
from certroll_dev.demo import pki
from certroll_dev.demo.api import API
from control_plane import ROOT, ControlPlane, wait_until
from faults import Account, Faults
from operators import LEASES, OTHER_CONSUMERS, RULES, Operator
from paper_pods import PaperPods
from samples import Sampler
from slots import KINDS, Churn, Slot, Supply
from tcp_gate import Gate

LOGS = ROOT / "build" / "test-logs" / "soak"

_POLICIES = 50  # of the release build, in so many namespaces:
_NAMESPACES = 5
_POLICIES_CHECKED = 10  # of each build with sanitizers
_STEP = 1.2  # seconds between two changes
_LOOK = 3.0  # seconds between two looks at everything
_FAULT = 20.0  # seconds between two faults
_SETTLE = 300.0  # for the last change to come to its end; usually a second or two

# What is really lost grows with each of the hundreds of changes and faults between the two quarters: 256 KiB are 500 bytes of each.
# Less than that is what a heap does by itself: pages that are touched for the first time, holes of other sizes.
# Code that is run for the first time is resident, too, but neither private nor dirty. Series begin when something comes to pass for
# the first time (an answer, a kind of failure), a few now and then; one left behind by each restart or policy would be hundreds.
# A connection that an outage has had opened may stay; a descriptor lost with each fault would be dozens.
_BOUNDS = {"private_dirty": 256.0, "resident": 512.0, "descriptors": 2.0, "threads": 0.0, "series": 40.0}


@dataclass(frozen=True)
class Subject:
    """One operator and the namespaces that it watches; the first is its own."""

    preset: str
    policies: int
    namespaces: Sequence[str]

    @property
    def name(self) -> str:
        return f"operator-{self.preset}"

    @property
    def program(self) -> Path:
        """Of build/, or of a folder like it."""
        return Path(os.environ.get("CERTROLL_BUILDS", ROOT / "build")) / self.preset / "bin" / "certroll-operator"

    def slots(self) -> list[Slot]:
        count = len(self.namespaces)
        return [Slot(self.namespaces[n % count], f"s{n}", KINDS[(n // count) % len(KINDS)]) for n in range(self.policies)]


SUBJECTS = (
    Subject("release", _POLICIES, [f"soak-{number}" for number in range(_NAMESPACES)]),
    Subject("dev", _POLICIES_CHECKED, ["soak-dev"]),
    Subject("tsan", _POLICIES_CHECKED, ["soak-tsan"]),
)


@pytest.fixture(scope="module")
def api(control_plane: ControlPlane) -> API:
    return API.from_kubeconfig(json.loads(control_plane.kubectl("config", "view", "--raw", "--minify", "-o", "json").stdout))


@pytest.fixture
def gate(control_plane: ControlPlane) -> Iterator[Gate]:
    host, _, port = control_plane.server.removeprefix("https://").rpartition(":")
    with Gate(host, int(port)) as gate:
        yield gate


@pytest.fixture(autouse=True)
def _logs_of_a_failure(request: pytest.FixtureRequest, control_plane: ControlPlane, tmp_path: Path) -> Iterator[None]:
    failed_before = request.session.testsfailed
    yield
    if request.session.testsfailed > failed_before:
        planes.collect_logs(LOGS, [control_plane.logs, tmp_path])


@pytest.mark.timeout(0)  # hack/test and CI have their own
def test_nothing_is_missed_repeated_or_grows(
    request: pytest.FixtureRequest, control_plane: ControlPlane, api: API, gate: Gate, tmp_path: Path
) -> None:
    seconds = 60 * request.config.getoption("--minutes")
    seed = request.config.getoption("--seed") or random.randrange(1 << 32)
    with ExitStack() as stack:
        accounts, operators = [], []
        for subject in SUBJECTS:
            account, operator = stack.enter_context(_running(control_plane, api, gate, subject, tmp_path))
            accounts.append(account)
            operators.append(operator)
        stack.enter_context(PaperPods(api, [namespace for subject in SUBJECTS for namespace in subject.namespaces], pause=1.0))
        churn = Churn(api, _supply(), [slot for subject in SUBJECTS for slot in subject.slots()], random.Random(seed))
        churn.create()
        _wait_settled(churn)
        faults = Faults(control_plane, api, gate, accounts, churn.step)
        faults.each_once()
        _wait_settled(churn)
        sampler = Sampler(operators[0].process.pid, lambda: _series(operators[0]))
        with sampler:
            _soak(seconds, churn, faults, operators)
        _wait_settled(churn)
        grown = samples.growth(sampler.samples, _BOUNDS)
        samples.save(sampler.samples, ROOT / "build" / "soak.csv")
        print(_report(seed, churn, faults, gate, sampler, grown))
        for operator in operators:
            _assert_ends_well(operator)
    too_much = [str(each) for each in grown if each.too_much]
    assert not too_much, "; ".join(too_much)


def _supply() -> Supply:
    authorities = [pki.new_authority(number) for number in (1, 2)]
    # Three leaves of a CA, then the other CA.
    return Supply([authorities[number // 3 % 2].issue(f"leaf-{number}") for number in range(24)])


@contextmanager
def _running(
    plane: ControlPlane, api: API, gate: Gate, subject: Subject, folder: Path
) -> Iterator[tuple[Account, Operator]]:
    for namespace in subject.namespaces:
        plane.kubectl("create", "namespace", namespace)
    own = subject.namespaces[0]
    plane.kubectl("create", "serviceaccount", subject.name, "-n", own)
    for namespace in subject.namespaces:
        _grant(plane, namespace, subject.name, own)
    token = folder / f"{subject.name}.token"
    account = Account(api, own, subject.name, token)
    kubeconfig = _kubeconfig(plane, gate, token, folder / f"{subject.name}.kubeconfig")
    more = [f"--namespace={namespace}" for namespace in subject.namespaces[1:]]
    # An API server that is away for longer than a leader may be ends it, as it must. It is to live on here.
    times = [f"--leader-elect-{key}" for key in ("lease-duration=1200s", "renew-deadline=1100s", "retry-period=5s")]
    operator = Operator(
        plane, own, subject.name, kubeconfig, folder, f"--operator-namespace={own}", *more, *times,
        program=subject.program, extra_environment=sanitizers.ENVIRONMENT,
    )  # fmt: skip
    try:
        operator.wait_line("all caches are in sync", timeout=_SETTLE)
        yield account, operator
    finally:
        operator.end()


def _grant(plane: ControlPlane, namespace: str, account: str, of: str) -> None:
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": account, "namespace": namespace}}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": of}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account}
    role = {**kind, "kind": "Role", "rules": [*RULES, LEASES, OTHER_CONSUMERS]}
    plane.create(role, {**kind, "kind": "RoleBinding", "roleRef": reference, "subjects": [subject]})


def _kubeconfig(plane: ControlPlane, gate: Gate, token: Path, path: Path) -> Path:
    config = json.loads(plane.kubectl("config", "view", "--raw", "--flatten", "-o", "json").stdout)
    cluster = config["clusters"][0]["cluster"]
    cluster["tls-server-name"] = cluster["server"].removeprefix("https://").rpartition(":")[0]
    cluster["server"] = f"https://127.0.0.1:{gate.port}"
    config["users"][0]["user"] = {"tokenFile": str(token)}
    path.write_text(json.dumps(config))
    return path


def _soak(seconds: float, churn: Churn, faults: Faults, operators: Sequence[Operator]) -> None:
    began = time.monotonic()
    clocks = [_Every(_STEP, churn.step), _Every(_LOOK, churn.look), _Every(_FAULT, faults.next)]

    def tell() -> None:
        counts = f"{churn.restarts} restarts, {sum(churn.done.values())} changes, {sum(faults.done.values())} faults"
        print(f"{(time.monotonic() - began) / 60:.0f} min: {counts}, {len(churn.busy())} under way", flush=True)

    told = _Every(60.0, tell)
    while time.monotonic() - began < seconds:
        for each in (*clocks, told):
            each.maybe()
        for operator in operators:
            assert operator.process.poll() is None, f"{operator.name} has ended: {operator.log.read_text()[-2000:]}"
        time.sleep(0.1)


class _Every:
    """What is late is not made up for: a slow machine has less to do."""

    def __init__(self, seconds: float, act: Callable[[], None]) -> None:
        self._seconds = seconds
        self._act = act
        self._next = time.monotonic() + seconds

    def maybe(self) -> None:
        if time.monotonic() >= self._next:
            self._act()
            self._next = time.monotonic() + self._seconds


def _wait_settled(churn: Churn) -> None:
    def settled() -> bool:
        churn.look()
        return not churn.busy()

    try:
        wait_until("everything to settle", settled, timeout=_SETTLE, pause=1.0)
    except AssertionError as error:
        raise AssertionError("missed:\n" + "\n".join(map(churn.describe, churn.busy()))) from error


def _assert_ends_well(operator: Operator) -> None:
    wait_until(f"{operator.name} to be ready", lambda: operator.get("/readyz") == (200, "ok\n"), timeout=_SETTLE)
    operator.signal(signal.SIGTERM)
    assert operator.wait(timeout=60) == 0
    report = sanitizers.report_in(operator.log)
    assert not report, f"{operator.name}: {report}"


def _series(operator: Operator) -> int:
    """Called from a thread of its own, which must not end the soak for a page that is late."""
    try:
        status, page = operator.get("/metrics")
    except AssertionError:
        return 0
    return sum(1 for line in page.splitlines() if line and not line.startswith("#")) if status == 200 else 0


def _report(
    seed: int, churn: Churn, faults: Faults, gate: Gate, sampler: Sampler, grown: Sequence[samples.Growth]
) -> str:
    peak = max(sample.resident for sample in sampler.samples)
    return "\n".join([
        f"seed {seed}; {len(sampler.samples)} samples, in build/soak.csv; peak {peak} KiB resident",
        f"{churn.restarts} restarts, none missed or repeated; changes: {churn.done}",
        f"faults: {faults.done}; {gate.cuts} connections cut",
        "least in the second and in the last quarter: " + "; ".join(map(str, grown)),
    ])
