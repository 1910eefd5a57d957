"""Which watches of Secrets the operator has open, on a real API server: as narrow as its policies want them, without a gap, and
with no more rights than these."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from control_plane import ROOT, ControlPlane, wait_until
from operators import RULES, Operator, account
from rotations import API, direct, leaves

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

from certroll_dev.demo.cluster import LocalCluster  # noqa: E402
from fake_api import FakeApi, lists  # noqa: E402
from fake_api.faults import Hold  # noqa: E402
from fake_api.message import Request, is_list_mark  # noqa: E402
from fake_api.schedule import ALWAYS  # noqa: E402

Object = dict[str, Any]
Start = Callable[..., Operator]
TLS, OPAQUE = "kubernetes.io/tls", "Opaque"
WIDE_TLS = "type=kubernetes.io/tls"
LIMIT = 50  # watch_scope.h
PER_POLICY = 60
_WORKERS = 4  # --workers, by default
_BURST = 0.1  # policies that come together are one decision (secret_watches.c)


@pytest.fixture(scope="module")
def material() -> list[Object]:
    return leaves(3)


@pytest.fixture
def api(control_plane: ControlPlane) -> Iterator[API]:
    with direct(control_plane) as found:
        yield found


@pytest.fixture
def start(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Start]:
    running: list[Operator] = []

    def go(*flags: str, rules: list[Any] | None = None) -> Operator:
        kubeconfig = account(control_plane, namespace, "operator", RULES if rules is None else rules, tmp_path)
        running.append(Operator(control_plane, namespace, "operator", kubeconfig, tmp_path, "--leader-elect=false", *flags))
        running[-1].wait_line("serving")
        return running[-1]

    yield go
    for each in running:
        each.end()


class Place:
    """A namespace, its Secrets and policies."""

    def __init__(self, plane: ControlPlane, api: API, namespace: str, material: list[Object]) -> None:
        self.plane, self.api, self.namespace, self.material = plane, api, namespace, material
        self.versions: dict[str, str] = {}  # of Secrets as they were written last
        self._leaf: dict[str, int] = {}

    def _other_leaf(self, name: str) -> Object:
        self._leaf[name] = 1 - self._leaf.get(name, 0)
        return self.material[self._leaf[name]]

    def secret(self, name: str, type: str = TLS, **labels: str) -> None:
        data = self._other_leaf(name) if type == TLS else {"password": "cGFzcw=="}
        metadata = {"name": name, "namespace": self.namespace, "labels": labels}
        written = self.api.apply("secrets", {"apiVersion": "v1", "kind": "Secret", "type": type, "metadata": metadata, "data": data})
        self.versions[name] = written["metadata"]["resourceVersion"]

    def secrets(self, names: Sequence[str]) -> None:
        for name in names:
            self.secret(name)

    def change(self, name: str, leaf: int | None = None) -> None:
        """Back and forth, which may pass unseen: or to a leaf that it never had."""
        data = self._other_leaf(name) if leaf is None else self.material[leaf]
        self.versions[name] = self.api.merge("secrets", self.namespace, name, {"data": data})["metadata"]["resourceVersion"]

    def delete_secret(self, name: str) -> None:
        self.api.delete("secrets", self.namespace, name)

    def policy(self, name: str, secrets: Sequence[str], **more: Any) -> None:
        """One whose consumer does not exist, so that each change is settled at once."""
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "absent"}
        spec = {"consumers": [{"name": "c", "targetRef": target, "optional": True}], **more}
        if secrets:
            spec["secrets"] = [{"name": each} for each in secrets]
        metadata = {"name": name, "namespace": self.namespace}
        self.api.apply("certrotationpolicies", {
            "apiVersion": "certroll.dev/v1alpha1", "kind": "CertRotationPolicy", "metadata": metadata, "spec": spec,
        })  # fmt: skip

    def delete_policy(self, name: str) -> None:
        self.api.delete("certrotationpolicies", self.namespace, name)

    # --- what came of it

    def status(self, policy: str) -> Object:
        found: Object = self.api.get("certrotationpolicies", self.namespace, policy).get("status", {})
        return found

    def knows(self, policy: str, *secrets: str) -> bool:
        """Each as it was written last, and nothing to be done for it."""
        seen = {each["name"]: each for each in self.status(policy).get("secrets", [])}
        return all(
            name in seen and seen[name].get("observedResourceVersion") == self.versions[name]
            for name in secrets
        )

    def wait_known(self, policy: str, *secrets: str) -> None:
        try:
            wait_until(f"{policy} to know {', '.join(secrets[:3])}", lambda: self.knows(policy, *secrets))
        except AssertionError as error:
            seen = {each["name"]: each.get("observedResourceVersion") for each in self.status(policy).get("secrets", [])}
            wrong = {name: (seen.get(name), self.versions[name]) for name in secrets if seen.get(name) != self.versions[name]}
            raise AssertionError(f"{error}: (known, is) {wrong}, {self.ready(policy)}") from None

    def ready(self, policy: str) -> Object:
        conditions = self.status(policy).get("conditions", [])
        return next((each for each in conditions if each["type"] == "Ready"), {})

    def says(self, policy: str, secret: str) -> bool:
        """That something is wrong with it."""
        return any(secret in each["message"] for each in self.status(policy).get("conditions", []))

    def watches(self, operator: Operator) -> list[str]:
        """Selectors of the watches of Secrets that are open, by the audit log."""
        selectors: dict[str, str] = {}
        for line in self.plane.audit_lines():
            if operator.user not in line or '"secrets"' not in line or '"watch"' not in line:
                continue
            event = json.loads(line)
            query = urllib.parse.parse_qs(urllib.parse.urlsplit(event["requestURI"]).query)
            labels, fields = query.get("labelSelector", [""])[0], query.get("fieldSelector", [""])[0]
            if event["stage"] == "ResponseStarted":
                selectors[event["auditID"]] = labels or fields.removeprefix("metadata.name=")
            else:
                selectors.pop(event["auditID"], None)
        return sorted(selectors.values())

    def wait_watches(self, operator: Operator, *expected: str) -> None:
        """At the API server, too, which a connection with nothing to say must tell at once what has ended."""
        wanted = set(expected)

        def look() -> bool:
            said = operator.lines("watches of Secrets")
            return bool(said) and said[-1]["watches"] == _summary(wanted) and sorted(wanted) == self.watches(operator)

        try:
            wait_until("the watches", look)
        except AssertionError:
            said = [line["watches"] for line in operator.lines("watches of Secrets")]
            raise AssertionError(f"{said}, {self.watches(operator)}; not {sorted(wanted)}") from None


def _summary(watches: set[str]) -> str:
    wide = next((each for each in watches if each.startswith("type")), "no shared one")
    labels = sum("=" in each and each != wide for each in watches)
    return f"{wide}, {sum('=' not in each for each in watches)} by name, {labels} by label"


@pytest.fixture
def place(control_plane: ControlPlane, api: API, namespace: str, material: list[Object]) -> Place:
    return Place(control_plane, api, namespace, material)


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}-{number}" for number in range(count)]


def test_watches_follow_the_policies(place: Place, start: Start) -> None:
    """Few by name; a selector by label; many by one watch of their type, and by name what is of another; and back."""
    few, many = names("few", 3), names("many", LIMIT)
    place.secrets([*few, *many])
    place.secret("opaque", OPAQUE)
    place.policy("few", few)
    operator = start()
    place.wait_watches(operator, *few)
    place.wait_known("few", *few)
    assert operator.get("/readyz") == (200, "ok\n")

    place.secret("labelled", app="shop")
    place.policy("selects", [], secretSelector={"matchLabels": {"app": "shop"}})
    place.wait_watches(operator, *few, "app=shop")
    place.wait_known("selects", "labelled")
    place.delete_policy("selects")
    place.wait_watches(operator, *few)

    place.policy("many", many)
    place.wait_watches(operator, WIDE_TLS)
    place.wait_known("many", *many)
    assert 'certroll_informer_objects{resource="secrets"} 53' in operator.get("/metrics")[1]

    place.policy("opaque", ["opaque", "absent"])
    place.wait_watches(operator, WIDE_TLS, "opaque", "absent")
    wait_until("the missing one to be told", lambda: place.says("opaque", "absent"))
    place.secret("absent")
    place.wait_watches(operator, WIDE_TLS, "opaque")
    place.change("few-1")
    place.wait_known("few", *few)

    place.delete_policy("many")
    place.wait_watches(operator, *few, "opaque", "absent")
    place.change("few-2")
    place.wait_known("few", *few)
    assert 'certroll_informer_objects{resource="secrets"} 5\n' in operator.get("/metrics")[1]


def test_a_name_that_comes_after_a_wide_list_is_seen(place: Place, start: Start) -> None:
    """The list has passed it over: few get a watch by name, for many the list is made anew."""
    many, late, later = names("many", LIMIT + 1), names("late", 2), names("later", LIMIT)
    place.secrets([*many, *late, *later])
    place.policy("many", many)
    operator = start()
    place.wait_watches(operator, WIDE_TLS)
    place.policy("late", late)
    place.wait_known("late", *late)
    place.wait_watches(operator, WIDE_TLS, *late)
    place.change("late-0")
    place.wait_known("late", *late)
    place.wait_watches(operator, WIDE_TLS, "late-1")  # the other one is in it, since it has changed
    place.policy("later", later)
    place.wait_known("later", *later)
    place.wait_watches(operator, WIDE_TLS)


def test_policies_that_come_faster_than_lists(control_plane: ControlPlane, place: Place, tmp_path: Path) -> None:
    """What the wide list has passed over waits for its end, and then for one more: not one for each few of them."""
    first, late = names("first", LIMIT + 1), [names(f"late-{number}", 40) for number in range(12)]
    place.secrets([*first, *(name for some in late for name in some)])
    place.policy("first", first)
    config = json.loads(control_plane.kubectl("config", "view", "--raw", "--minify", "-o", "json").stdout)
    with LocalCluster(control_plane.name).network(), FakeApi(tmp_path, config) as fake:
        hold = Hold()
        wide = fake.fault(_is_wide, hold, is_list_mark, times=ALWAYS)
        kubeconfig = fake.kubeconfig(tmp_path / "kubeconfig")
        operator = Operator(control_plane, place.namespace, "operator", kubeconfig, tmp_path, "--leader-elect=false")
        try:
            operator.wait_line("serving")
            wait_until("the wide list", lambda: wide.struck > 0)
            for number, some in enumerate(late):
                place.policy(f"late-{number}", some)
                wait_until("the policy to be seen", lambda count=number + 2: _policies_seen(operator) == count)
                time.sleep(_BURST)  # so that each is a decision
            hold.release()
            for number, some in enumerate(late):
                place.wait_known(f"late-{number}", *some)
        finally:
            operator.end()
        lists_made = [call.request for call in fake.calls(lists("secrets"))]
        assert sum(map(_is_wide, lists_made)) == 2, [request.path for request in lists_made if _is_wide(request)]
        assert len(lists_made) - 2 <= LIMIT
    assert fake.errors == []


def test_two_wide_watches_that_are_replaced_at_the_same_time(control_plane: ControlPlane, place: Place, tmp_path: Path) -> None:
    """Each hands over to the one that stays: the second was once compared with the first, which was freed."""
    groups = {"first": names("first", LIMIT + 1), "second": names("second", LIMIT), "third": names("third", LIMIT)}
    place.secrets([name for group in groups.values() for name in group])
    place.secret("slow", OPAQUE)
    place.policy("first", groups["first"])
    config = json.loads(control_plane.kubectl("config", "view", "--raw", "--minify", "-o", "json").stdout)
    with LocalCluster(control_plane.name).network(), FakeApi(tmp_path, config) as fake:
        hold = Hold()  # as long as a list is missing, no watch ends
        by_name = fake.fault(_is_of_slow, hold, is_list_mark, times=ALWAYS)
        kubeconfig = fake.kubeconfig(tmp_path / "kubeconfig")
        operator = Operator(control_plane, place.namespace, "operator", kubeconfig, tmp_path, "--leader-elect=false")
        try:
            operator.wait_line("all caches are in sync")
            place.policy("slow", ["slow"])
            wait_until("the list that is missing", lambda: by_name.struck > 0)
            for group in ("second", "third"):
                place.policy(group, groups[group])
                place.wait_known(group, *groups[group])
            wides = [call for call in fake.calls(lists("secrets")) if _is_wide(call.request)]
            assert len(wides) == len(groups)
            hold.release()
            place.wait_known("slow", "slow")
            summary = _summary({WIDE_TLS, "slow"})
            wait_until("the others to end", lambda: [line["watches"] for line in operator.lines("watches of Secrets")][-1] == summary)
            place.change("first-0")
            place.wait_known("first", "first-0")
        finally:
            operator.end()
    assert fake.errors == []


def _is_of_slow(request: Request) -> bool:
    return lists("secrets")(request) and "metadata.name%3Dslow" in request.path


def test_a_list_that_a_policy_asks_for_keeps_nobody_from_being_ready(control_plane: ControlPlane, place: Place, tmp_path: Path) -> None:
    """At the start all are waited for; of what comes later, whoever writes policies says how long it takes."""
    first, late = names("first", 2), names("late", LIMIT + 1)
    place.secrets([*first, *late])
    place.policy("first", first)
    config = json.loads(control_plane.kubectl("config", "view", "--raw", "--minify", "-o", "json").stdout)
    with LocalCluster(control_plane.name).network(), FakeApi(tmp_path, config) as fake:
        hold = Hold()
        wide = fake.fault(_is_wide, hold, is_list_mark, times=ALWAYS)
        kubeconfig = fake.kubeconfig(tmp_path / "kubeconfig")
        operator = Operator(control_plane, place.namespace, "operator", kubeconfig, tmp_path, "--leader-elect=false")
        try:
            operator.wait_line("all caches are in sync")
            place.policy("late", late)
            wait_until("the wide list", lambda: wide.struck > 0)
            assert operator.get("/readyz", page="/readyz") == (200, "ok\n")
            hold.release()
            place.wait_known("late", *late)
        finally:
            operator.end()
    assert fake.errors == []


def _policies_seen(operator: Operator) -> int:
    found = re.search(r'^certroll_informer_objects\{resource="certrotationpolicies"\} (\d+)$', operator.get("/metrics")[1], re.MULTILINE)
    return int(found[1]) if found else 0


def _is_wide(request: Request) -> bool:
    return lists("secrets")(request) and "fieldSelector=type" in request.path


def test_created_anew_with_another_type(place: Place, start: Start) -> None:
    many = names("many", LIMIT + 1)
    place.secrets(many)
    place.policy("many", many)
    operator = start()
    place.wait_watches(operator, WIDE_TLS)
    place.wait_known("many", *many)
    place.delete_secret("many-0")
    place.secret("many-0", OPAQUE)
    wait_until("its loss of the leaf to be told", lambda: place.says("many", "many-0"))
    place.wait_watches(operator, WIDE_TLS, "many-0")
    place.delete_secret("many-0")
    place.secret("many-0")
    place.wait_known("many", *many)
    place.wait_watches(operator, WIDE_TLS)


def test_nothing_is_missed_while_the_scope_changes(place: Place, start: Start) -> None:
    kept, filler = names("kept", 4), names("filler", LIMIT)
    place.secrets([*kept, *filler])
    place.policy("kept", kept)
    operator = start()
    place.wait_known("kept", *kept)
    end = threading.Event()
    changed = threading.Thread(target=_keep_changing, args=(place, kept, end))
    changed.start()
    try:
        for again in (True, True, False):
            place.policy("filler", filler)
            place.wait_watches(operator, WIDE_TLS)
            place.delete_policy("filler")
            if not again:
                end.set()
            place.wait_watches(operator, *kept)
    finally:
        end.set()
        changed.join()
    place.wait_known("kept", *kept)
    assert not operator.lines("a watch is interrupted")


def _keep_changing(place: Place, secrets: list[str], end: threading.Event) -> None:
    """The network of a thread is that of the one which made it."""
    while not end.wait(0.3):
        for name in secrets:
            place.change(name)
    for name in secrets:
        place.change(name, leaf=2)


# --- by name only


def rules_for(secrets: list[str]) -> list[Object]:
    """As components/named-secrets has it."""
    return [
        {"apiGroups": ["certroll.dev"], "resources": ["certrotationpolicies"], "verbs": ["list", "watch"]},
        {"apiGroups": ["certroll.dev"], "resources": ["certrotationpolicies/status"], "verbs": ["patch"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": secrets, "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
        {"apiGroups": ["apps"], "resources": ["deployments", "statefulsets", "daemonsets"], "verbs": ["list", "watch"]},
    ]


def test_named_needs_only_the_rights_to_these_names(place: Place, start: Start) -> None:
    for name in ("mine", "theirs", "other"):
        place.secret(name, app="shop")
    place.policy("mine", ["mine"])
    operator = start("--secret-scope=named", rules=rules_for(["mine", "other"]))
    place.wait_known("mine", "mine")
    place.policy("theirs", ["other", "theirs"])
    ready = wait_until("what is forbidden to be told", lambda: place.ready("theirs").get("reason") == "CannotWatch" and place.ready("theirs"))
    assert ready["status"] == "False"
    assert "Secret theirs cannot be seen" in ready["message"]
    assert f"grant get, list and watch on secrets in namespace {place.namespace} (of resourceNames: theirs)" in ready["message"]
    # Others go on, and the operator could go on when it is another's turn.
    place.change("mine")
    place.wait_known("mine", "mine")
    assert operator.get("/readyz")[0] == 200

    place.policy("selects", ["other"], secretSelector={"matchLabels": {"app": "shop"}})
    place.wait_known("selects", "other")
    ready = place.ready("selects")
    assert ready["status"] == "False" and "--secret-scope=named" in ready["message"]
    place.change("other")
    place.wait_known("selects", "other")

    role = {"rules": rules_for(["mine", "theirs", "other"])}
    place.plane.kubectl("patch", "role", "operator", "-n", place.namespace, "--type=merge", "-p", json.dumps(role))
    wait_until("theirs to be known: a refused watch comes back after 30 s", lambda: place.knows("theirs", "other", "theirs"), 90)
    wait_until("that it is ready", lambda: place.ready("theirs")["status"] == "True")


def test_many_names_share_few_connections(place: Place, start: Start) -> None:
    """90 watches each: an API server gives a connection 100 streams."""
    every = names("named", 4 * PER_POLICY + 10)
    place.secrets(every)
    parts = [every[at : at + PER_POLICY] for at in range(0, len(every), PER_POLICY)]
    for number, part in enumerate(parts):
        place.policy(f"part-{number}", part)
    operator = start("--secret-scope=named")
    for number, part in enumerate(parts):
        place.wait_known(f"part-{number}", *part)
    place.wait_watches(operator, *every)
    for name in every:
        place.change(name)
    for number, part in enumerate(parts):
        place.wait_known(f"part-{number}", *part)
    # Three of watches, and one for each worker that had something to ask while others did.
    assert 3 < _connections(place.plane, operator) <= 3 + _WORKERS


def _connections(plane: ControlPlane, operator: Operator) -> int:
    listed = subprocess.run(plane.command(["ss", "-Htnp", "state", "established"]), capture_output=True, text=True, check=True)
    return len(re.findall(rf"pid={operator.process.pid},", listed.stdout))
