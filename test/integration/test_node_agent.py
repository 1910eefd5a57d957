"""The node agent beside a real API server, with the rights that its manifests give it: what it reports, that it carries an
order out once, whoever kills it when, and what admission keeps it from. The kubelet is played, its etcd is real."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from control_plane import ROOT, ControlPlane, wait_until

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

from certroll_dev.demo.cluster import LocalCluster  # noqa: E402
from operators import api_server_stopped  # noqa: E402
from paper_node import ACCOUNT, LEASE, NAMESPACE, PROGRAM, WORKER, Agent, PaperNode, node_agents, node_kubeconfig  # noqa: E402
from test_metrics import check, parse, promtool, value  # noqa: E402, F401
from write_proxy import Trap, WriteProxy  # noqa: E402

_numbers = itertools.count(1)
_LOOKS = 90.0  # seconds: some looks, of which there is one each 20 s while nothing is heard of; a busy etcd misses one

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def installed(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    with node_agents(control_plane):
        yield control_plane


@contextmanager
def a_node_object(plane: ControlPlane) -> Iterator[str]:
    name = f"paper-{next(_numbers)}-{time.time_ns() % 10**6}"
    plane.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    plane.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": {"nodeInfo": NODE_INFO}}))
    yield name
    plane.kubectl("delete", "node", name, "--wait=false")
    plane.kubectl("delete", "ncr", name, "--ignore-not-found")


NODE_INFO = {
    "kubeletVersion": "v1.36.3", "kubeProxyVersion": "", "architecture": "", "bootID": "", "containerRuntimeVersion": "",
    "kernelVersion": "", "machineID": "", "operatingSystem": "linux", "osImage": "", "systemUUID": "",
}  # fmt: skip


@pytest.fixture
def node(installed: ControlPlane, tmp_path: Path) -> Iterator[PaperNode]:
    cluster = LocalCluster(installed.name)
    installed.kubectl("delete", *LEASE, "--ignore-not-found")  # an agent that was killed had it
    with a_node_object(installed) as name, cluster.network(), PaperNode(installed, name, tmp_path / "node") as found:
        yield found


@pytest.fixture
def kubeconfig(installed: ControlPlane, node: PaperNode, tmp_path: Path) -> Path:
    return node_kubeconfig(installed, node.name, tmp_path)


@pytest.fixture
def start(node: PaperNode, kubeconfig: Path) -> Iterator[Callable[..., Agent]]:
    running: list[Agent] = []

    def go(*flags: str, allowed: str = "etcd") -> Agent:
        running.append(node.agent(kubeconfig, f"agent-{len(running) + 1}", f"--allow-restart={allowed}", *flags))
        return running[-1]

    yield go
    for each in running:
        each.end()


def reported(node: PaperNode) -> bool:
    done = node.plane.kubectl("get", "ncr", node.name, "-o", "jsonpath={.status.files[*].parameter}", check=False)
    return "--trusted-ca-file" in done.stdout


def loaded(node: PaperNode, parameter: str) -> str:
    return node.rows(parameter)[0]["loaded"]


def holder(plane: ControlPlane) -> str:
    return plane.get(*LEASE)["spec"].get("holderIdentity", "")


# --- the report


def test_a_report_is_made_and_kept(node: PaperNode, start: Callable[..., Agent]) -> None:
    agent = start()
    wait_until("a report", lambda: reported(node))
    first = node.report()
    owner = first["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"]) == ("Node", node.name)
    assert owner["uid"] == node.plane.get("node", node.name)["metadata"]["uid"]
    etcd = node.etcd()
    assert (etcd["name"], etcd["version"], etcd["running"], etcd["restart"]) == ("etcd", "3.6.8-0", True, "Manifest")
    wait_until("etcd to serve", lambda: node.etcd()["health"] == "Serving", _LOOKS)

    before = node.rows("--cert-file")[0]["fingerprints"]
    node.put_leaf()
    wait_until("the new leaf to be seen served", lambda: served_another(node, before), _LOOKS)
    node.put_trust()
    wait_until("that etcd needs a restart for its CAs", lambda: loaded(node, "--trusted-ca-file") == "RestartNeeded")
    assert node.report()["status"]["pending"] > 0

    seen = node.report()["status"]["seen"]
    wait_until("the report to be renewed", lambda: node.report()["status"]["seen"] > seen, timeout=40)
    node.plane.kubectl("delete", "ncr", node.name)
    wait_until("the report to be there again", lambda: reported(node))

    assert agent.get("/readyz")[0] == 200
    page = agent.get("/metrics")[1]
    assert 'certroll_node_component_serving{component="etcd"} 1' in page
    assert 'parameter="--trusted-ca-file"' in page and 'state="RestartNeeded"' in page
    assert "certroll_node_api_unreachable_seconds 0" in page


def served_another(node: PaperNode, before: list[str]) -> bool:
    row = node.rows("--cert-file")[0]
    return row["fingerprints"] != before and (row["loaded"], row["evidence"]) == ("Loaded", "Verified")


def test_etcd_is_asked_for_handshakes_only_when_something_is_another(node: PaperNode, start: Callable[..., Agent]) -> None:
    agent = start()
    wait_until("a report", lambda: reported(node))
    wait_until("etcd to serve", lambda: node.etcd()["health"] == "Serving" and loaded(node, "--cert-file") == "Loaded", _LOOKS)

    def looks() -> float:
        return value(agent.get("/metrics")[1], "certroll_node_look_duration_seconds_count")

    def rejected() -> int:
        return (node.folder / "etcd.log").read_text().count("rejected connection")

    def look() -> None:
        before = looks()
        (node.manifest.parent / ".of-nobody").write_text("x")
        wait_until("another look", lambda: looks() > before)

    look()
    before = rejected()
    assert before
    for _ in range(3):
        look()
    assert rejected() == before and node.etcd()["health"] == "Serving"
    node.put_leaf()
    wait_until("its new leaf to be seen", lambda: rejected() > before)
    wait_until("it to be told", lambda: node.rows("--cert-file")[0]["evidence"] == "Verified" and loaded(node, "--cert-file") == "Loaded")


def test_a_second_agent_of_the_node_does_not_start(node: PaperNode, start: Callable[..., Agent]) -> None:
    start()
    wait_until("a report", lambda: reported(node))
    other = start()
    assert other.wait() == 1
    assert "another agent runs on this node" in other.log.read_text()


def test_inspect_says_what_is_reported(node: PaperNode, start: Callable[..., Agent]) -> None:
    start()
    wait_until("a report", lambda: reported(node))
    words = ["inspect", "--root", node.root, "--proc", node.proc, "--manifests", "/etc/kubernetes/manifests", "--allow-restart=etcd"]
    status = json.loads(node.plane.run(PROGRAM, *words, "--json").stdout)
    keys = ("component", "parameter", "role", "path", "method", "fingerprints")
    assert [[row.get(key) for key in keys] for row in status["files"]] == [
        [row.get(key) for key in keys] for row in node.report()["status"]["files"]
    ]
    table = node.plane.run(PROGRAM, *words).stdout
    assert "etcd" in table and "--trusted-ca-file" in table


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give --node-name, or $NODE_NAME"),
        (["--node-name=a", "--allow-restart=etcd,kubelte"], "--allow-restart 'kubelte': there are kube-apiserver,"),
        (["--node-name=a", "--kubelet-restart-command=a | b"], "is more than one command with plain words: no shell runs it"),
        (["--node-name=a", "--kubelet-restart-timeout=21s"], "--kubelet-restart-timeout must be at most 20 s"),
        (["--node-name=a", "--root=host"], "--root must be an absolute path"),
        (["--node-name=a", "--json"], "--json and --kubelet-version are inspect's"),
        (["look"], "there is no command 'look': there are run and inspect"),
    ],
)
def test_wrong_usage_is_told(words: list[str], message: str) -> None:
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=60, env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 2
    assert message in done.stderr


def test_where_there_is_no_node_it_says_so(control_plane: ControlPlane, tmp_path: Path) -> None:
    done = control_plane.run(PROGRAM, "--node-name=a", "--root", tmp_path, check=False)
    assert done.returncode == 1
    assert f"{tmp_path} has neither /etc/kubernetes nor /var/lib/kubelet: mount the node's folders there" in done.stderr


# --- orders


@pytest.fixture
def pending(node: PaperNode, start: Callable[..., Agent]) -> Agent:
    """An agent, and CAs that etcd has not loaded."""
    agent = start()
    wait_until("a report", lambda: reported(node))
    wait_until("etcd to serve", lambda: node.etcd()["health"] == "Serving", _LOOKS)
    node.put_trust()
    wait_until("that etcd needs a restart", lambda: loaded(node, "--trusted-ca-file") == "RestartNeeded")
    return agent


def test_an_order_is_carried_out_once(node: PaperNode, pending: Agent, start: Callable[..., Agent]) -> None:
    text = node.manifest.read_text()
    node.order("one")
    done = node.wait_phase("Done", "one")
    assert done["component"] == "etcd" and done["started"] <= done["finished"]
    assert node.starts == 2
    assert node.token() == "one"
    assert "# As a person wrote it." in node.manifest.read_text()
    assert [line for line in node.manifest.read_text().splitlines() if "certroll.dev" not in line] == text.splitlines()
    wait_until("the CAs to be loaded", lambda: loaded(node, "--trusted-ca-file") == "Loaded")
    wait_until("the turn to be given up", lambda: holder(node.plane) == "")
    pending.kill()
    again = start()
    again.wait_line("all caches are in sync")
    seen = node.report()["status"]["seen"]
    wait_until("it to have looked", lambda: node.report()["status"]["seen"] > seen, timeout=40)
    assert node.starts == 2 and node.restart()["phase"] == "Done"
    assert not again.lines("restart")


def test_it_waits_for_its_turn(node: PaperNode, pending: Agent) -> None:
    plane = node.plane
    plane.kubectl("delete", *LEASE, "--ignore-not-found")
    name, namespace = LEASE[1], LEASE[3]
    other = {"holderIdentity": "other_certroll-node-agent", "leaseDurationSeconds": 3600}
    plane.create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name, "namespace": namespace}, "spec": other})
    node.order("wait")
    wait_until("it to say who has the turn", lambda: "is held by other_certroll-node-agent" in str(node.restart().get("message")))
    assert node.restart()["phase"] == "Waiting" and node.starts == 1
    plane.kubectl("patch", *LEASE, "--type=merge", "-p", '{"spec":{"holderIdentity":""}}')
    node.wait_phase("Done", "wait")
    assert node.starts == 2


def test_an_order_that_is_taken_back_is_forgotten(node: PaperNode, pending: Agent) -> None:
    plane = node.plane
    plane.kubectl("delete", *LEASE, "--ignore-not-found")
    spec = {"holderIdentity": "other_certroll-node-agent", "leaseDurationSeconds": 3600}
    plane.create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LEASE[1], "namespace": LEASE[3]}, "spec": spec})
    node.order("back")
    node.wait_phase("Waiting", "back")
    plane.kubectl("patch", "ncr", node.name, "--type=merge", "-p", '{"spec":{"restart":null}}')
    wait_until("it to be forgotten", lambda: node.restart()["phase"] == "None")
    plane.kubectl("delete", *LEASE)
    assert node.starts == 1 and node.token() is None


@pytest.mark.parametrize(
    ("component", "words"),
    [("kube-apiserver", "there is no such component on this node"), ("kubelet", "--allow-restart of the agent does not name it")],
)
def test_what_is_not_there_is_refused(node: PaperNode, pending: Agent, component: str, words: str) -> None:
    node.order("no", component)
    assert words in node.wait_phase("Refused", "no")["message"]
    known = {each["name"] for each in node.report()["status"]["components"]}
    counted = component if component in known else "unknown"
    wait_until("it to be counted", lambda: value(pending.get("/metrics")[1], "certroll_node_restarts_total", component=counted, result="Refused") == 1)


def test_what_is_not_allowed_is_refused(node: PaperNode, start: Callable[..., Agent]) -> None:
    start(allowed="kube-apiserver")
    wait_until("a report", lambda: reported(node))
    assert "--allow-restart" in node.etcd()["restartRefused"]
    node.order("no")
    assert "--allow-restart" in node.wait_phase("Refused", "no")["message"]
    assert node.starts == 1 and node.token() is None


def test_it_fails_when_the_kubelet_does_not_follow(node: PaperNode, pending: Agent, start: Callable[..., Agent]) -> None:
    pending.kill()
    start("--step-deadline=15s")  # also the next restart's, which must succeed on a busy machine
    node.deaf.set()
    node.order("deaf")
    failed = node.wait_phase("Failed", "deaf")
    assert failed["message"] and node.starts == 1
    wait_until("the turn to be given up", lambda: holder(node.plane) == "")
    node.deaf.clear()
    wait_until("etcd to be there again", lambda: node.starts == 2)
    node.order("next")
    node.wait_phase("Done", "next")


def test_what_cannot_be_begun_fails_in_the_end(node: PaperNode, pending: Agent, start: Callable[..., Agent]) -> None:
    pending.kill()
    start("--step-deadline=6s")
    (node.manifest.parent.parent / ".etcd.yaml.certroll").mkdir()  # nothing can be written beside the folder
    text = node.manifest.read_text()
    node.order("stuck")
    assert "remove what a restart before has left" in node.wait_phase("Failed", "stuck")["message"]
    assert node.starts == 1 and node.manifest.read_text() == text
    wait_until("the turn to be given up", lambda: holder(node.plane) == "")


def test_it_goes_on_while_the_api_server_does_not_answer(node: PaperNode, pending: Agent) -> None:
    node.deaf.set()
    node.order("hang")
    wait_until("the manifest to be written", lambda: node.token() == "hang")
    with api_server_stopped(node.plane):
        node.deaf.clear()
        wait_until("etcd to be another one", lambda: node.starts == 2)
        pending.wait_line("the API server does not do what it is asked for", timeout=60)
    node.wait_phase("Done", "hang", timeout=90)
    pending.wait_line("the API server is within reach again")


def test_its_metrics_are_those_of_the_page(node: PaperNode, pending: Agent, promtool: Path) -> None:  # noqa: F811
    node.order("count")
    node.wait_phase("Done", "count")
    wait_until("it to be counted", lambda: 'restarts_total{component="etcd",result="Done"} 1' in pending.get("/metrics")[1])
    page = pending.get("/metrics")[1]
    check(promtool, "check", "metrics", input=page)
    families = {name: family for name, family in parse(page).items() if name.startswith("certroll_node_")}
    text = (ROOT / "docs" / "node-agent.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (counter|gauge|histogram) \|([\w, ]*)\|", text, re.MULTILINE)
    documented = {name: (kind, set(labels.replace(",", " ").split())) for name, kind, labels in rows}
    for name, family in families.items():
        labels = {label for _, each, _ in family.samples for label in each if label != "le"}
        assert (family.type, labels) == documented[name] or not family.samples, name
    # Nothing is under way, and nothing has failed.
    assert documented.keys() - families.keys() <= {"certroll_node_restart_under_way", "certroll_node_api_errors_total"}


# --- crashes


def test_killed_at_each_write_it_is_done_once(node: PaperNode, kubeconfig: Path, tmp_path: Path) -> None:
    """Before a write is passed on, and after; until an order comes to its end before there were so many writes."""
    killed = 0
    with WriteProxy(json.loads(kubeconfig.read_text()), tmp_path) as proxy:
        through = proxy.kubeconfig(tmp_path / "through.kubeconfig")
        agent = node.agent(through, "agent", "--allow-restart=etcd")
        try:
            wait_until("a report", lambda: reported(node))
            wait_until("etcd to serve", lambda: node.etcd()["health"] == "Serving", _LOOKS)
            for number, when in itertools.product(range(1, 20), ("before", "after")):
                node.put_trust()
                wait_until("that etcd needs a restart", lambda: loaded(node, "--trusted-ca-file") == "RestartNeeded")
                starts, token = node.starts, f"{when}-{number}"
                proxy.set(Trap(number, when, lambda _, agent=agent: agent.kill()))  # type: ignore[arg-type]
                node.order(token)
                ended = _await_end(node, agent, token)
                proxy.set(None)  # later writes are of no order
                if ended == "killed":
                    killed += 1
                    agent = node.agent(through, f"agent-{token}", "--allow-restart=etcd")
                    node.wait_phase("Done", token)
                assert node.starts == starts + 1, token
                assert node.token() == token
                if ended == "done":
                    break
        finally:
            agent.end()
        assert not proxy.errors
    assert killed >= 6  # accepted, recorded, done: before and after each at least


def _await_end(node: PaperNode, agent: Agent, token: str) -> str:
    def ended() -> str:
        if agent.process.poll() is not None:
            return "killed"
        found = node.restart()
        return "done" if (found.get("token"), found.get("phase")) == (token, "Done") else ""

    return wait_until(f"the end of {token}, or of the agent", ended, timeout=60)


@pytest.mark.parametrize("back", ["before-the-pod", "after-the-pod"])
def test_killed_while_the_pod_is_away(node: PaperNode, pending: Agent, start: Callable[..., Agent], back: str) -> None:
    node.deaf.set()
    node.order("away")
    wait_until("the manifest to be written", lambda: node.token() == "away")
    pending.kill()
    if back == "before-the-pod":
        again = start()
        again.wait_line("serving")
        page = 'certroll_node_restart_under_way{component="etcd"} 1'
        wait_until("it to go on", lambda: page in again.get("/metrics")[1])
    node.deaf.clear()
    wait_until("etcd to be another one", lambda: node.starts == 2)
    if back == "after-the-pod":
        start()
    node.wait_phase("Done", "away")
    assert node.starts == 2
    wait_until("the turn to be given up", lambda: holder(node.plane) == "")


# --- what admission keeps it from


@pytest.fixture
def refused(installed: ControlPlane, tmp_path: Path) -> Iterator[Callable[..., str]]:
    """What the API server says to a token of a node (None: of none)."""
    with a_node_object(installed) as name:

        def go(verb: str, what: Any, node: str | None = name) -> str:
            config = node_kubeconfig(installed, node, tmp_path)
            text = json.dumps(what).replace("$NODE", name)
            words = [verb, "--dry-run=server", "-f", "-"] if isinstance(what, dict) else [verb, *what]
            done = installed.kubectl("--kubeconfig", str(config), *words, input=text, check=False)
            return done.stderr if done.returncode else ""

        wait_until("the policy to be in force", lambda: go("create", REPORT, None))
        yield go


REPORT = {"apiVersion": "certroll.dev/v1alpha1", "kind": "NodeCertificateReport", "metadata": {"name": "$NODE"}, "spec": {}}
TURN = {
    "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "certroll-test-$NODE", "namespace": "kube-system"},
    "spec": {"holderIdentity": "$NODE_certroll-node-agent"},
}  # fmt: skip


def test_a_report_is_bound_to_the_node_of_the_token(refused: Callable[..., str]) -> None:
    assert refused("create", REPORT) == ""
    assert "may write the report of its own node only" in refused("create", {**REPORT, "metadata": {"name": "another"}})
    assert "must be bound to a node" in refused("create", REPORT, None)
    order = {"restart": {"token": "t", "component": "etcd"}}
    assert "gives no orders" in refused("create", {**REPORT, "spec": order})


def test_the_status_of_another_node_is_not_its_own(installed: ControlPlane, refused: Callable[..., str], tmp_path: Path) -> None:
    """Asked as the agent asks: kubectl would read the status first."""
    with a_node_object(installed) as own, a_node_object(installed) as another:
        token = json.loads(node_kubeconfig(installed, own, tmp_path).read_text())["users"][0]["user"]["token"]

        def patch(report: str, subresource: str, body: Any) -> dict[str, Any]:
            url = f"{installed.server}/apis/certroll.dev/v1alpha1/nodecertificatereports/{report}{subresource}"
            words = ["-H", f"Authorization: Bearer {token}", "-H", "Content-Type: application/merge-patch+json", "-d", json.dumps(body)]
            return json.loads(installed.run("curl", "-sSk", "-X", "PATCH", *words, url).stdout)

        for name in (own, another):
            installed.create({**REPORT, "metadata": {"name": name}})
        status = {"status": {"agent": "x"}}
        assert patch(own, "/status", status)["status"]["agent"] == "x"
        assert "may write the report of its own node only" in patch(another, "/status", status)["message"]
        assert "cannot patch resource" in patch(own, "", {"spec": {"restart": None}})["message"]
        sneaky = {**status, "spec": {"restart": {"token": "t", "component": "etcd"}}}
        assert "restart" not in patch(own, "/status", sneaky)["spec"]
    assert "cannot delete" in refused("delete", ["ncr", "another"])


def test_the_turn_is_taken_for_the_own_node(installed: ControlPlane, refused: Callable[..., str]) -> None:
    assert "may write the Lease kube-system/certroll-control-plane only" in refused("create", TURN)
    installed.kubectl("delete", *LEASE, "--ignore-not-found")
    turn = {**TURN, "metadata": {"name": LEASE[1], "namespace": LEASE[3]}}
    assert refused("create", turn) == ""
    assert "may take the turn for its own node only" in refused("create", {**turn, "spec": {"holderIdentity": "another_agent"}})


@pytest.mark.parametrize("account", [ACCOUNT, WORKER])
def test_the_account_has_no_other_rights(installed: ControlPlane, account: str) -> None:
    user = f"--as=system:serviceaccount:{NAMESPACE}:{account}"
    turns = [("patch", "/".join(LEASE[:2]), *LEASE[2:]), ("create", "lease", *LEASE[2:])]
    refused = [("get", "secrets", "-A"), ("patch", "nodes"), ("delete", "ncr"), ("update", "ncr"), ("create", "pods", "-A")]
    refused += [] if account == ACCOUNT else turns
    for words in refused:
        assert installed.kubectl("auth", "can-i", *words, user, check=False).stdout.strip() == "no", words
