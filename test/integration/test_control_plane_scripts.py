"""The scripts that replace the control plane's CA and keys: a connection that breaks leaves each file of a node whole.

The node is a folder, kubectl and certroll agree to everything. What certroll makes of the files is e2e/test_control_plane_rotation.py.
"""

from __future__ import annotations

import base64
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from control_plane import ROOT

from certroll_dev.demo import pki

EXAMPLES = ROOT / "manifests" / "node-agent" / "examples"

# on-node NODE SCRIPT [ARGUMENT...]. FAULT names a file and which of its calls fails: "lost", before it has begun, or "cut", after
# some bytes each way. The other end is not told: it sees the end of its stdin, goes on and ends as it likes.
_ON_NODE = """\
#!/bin/bash
shift
script=${1//cd \\/etc/cd $NODE/etc}
words=("${@:2}")
words=("${words[@]/#\\/etc/$NODE/etc}")
words=("${words[@]/#\\/var/$NODE/var}")
case "$script" in *pidof*) exit 0 ;; esac
read -r kind file which <<< "$FAULT"
case "${words[*]} " in
*/$file\\ *)
    echo >> "$NODE/calls"
    if [ "$(wc -l < "$NODE/calls")" = "$which" ]; then
        if [ "$kind" = cut ]; then head -c 100 | sh -euc "$script" sh "${words[@]}" | head -c 100; fi
        exit 255
    fi ;;
esac
exec sh -euc "$script" sh "${words[@]}"
"""

# POLICY_FAULT: the calls about the policy that fail at once, as those about one that is not there.
_KUBECTL = """\
#!/bin/sh
case "$*" in
"get nodes"*) echo node-1 ;;
*configmap*) exit 1 ;;
*controlplanepolicy*)
    printf '%s\\n' "$*" >> "$NODE/asked"
    case "$*" in $POLICY_FAULT) echo 'Error from server (NotFound): "control-plane" not found' >&2; exit 1 ;; esac ;;
esac
"""

_SLEEP = """\
#!/bin/sh
echo "$*" >> "$NODE/slept"
"""

_KUBECONFIG = """\
clusters:
- cluster:
    certificate-authority-data: {ca}
    server: https://127.0.0.1:6443
users:
- name: admin
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
"""


def _inline(data: bytes) -> str:
    return base64.b64encode(data).decode()


class Node:
    """Its folders as kubeadm has them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "node"
        self.rotation = folder / "rotation"
        self.kubernetes = self.folder / "etc/kubernetes"
        self.conf = self.kubernetes / "admin.conf"
        self.kubelet = self.folder / "var/lib/kubelet/pki/kubelet-client-current.pem"
        self.old = pki.new_authority(1)
        self.leaf = self.old.issue("kube-apiserver")
        self._bin = folder / "bin"
        inline = {"ca": self.leaf.trust, "certificate": self.leaf.certificate, "key": self.leaf.key}
        files = {
            self.kubernetes / "pki/ca.crt": self.old.certificate,
            self.kubernetes / "pki/ca.key": self.old.key,
            self.kubernetes / "pki/sa.pub": _public(self.old.key),
            self.kubernetes / "pki/sa.key": self.old.key,
            self.kubernetes / "manifests/kube-controller-manager.yaml": b"    - --cluster-signing-cert-file=/etc/kubernetes/pki/ca.crt\n",
            self.conf: _KUBECONFIG.format_map({name: _inline(data) for name, data in inline.items()}).encode(),
            self.kubelet: self.leaf.certificate + self.leaf.key,
        }
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self._bin.mkdir()
        for name, text in (("on-node", _ON_NODE), ("kubectl", _KUBECTL), ("sleep", _SLEEP)):
            (self._bin / name).write_text(text)
            (self._bin / name).chmod(0o755)

    def environment(self, fault: str = "", **more: str) -> Mapping[str, str]:
        own = {"PATH": f"{self._bin}:{os.environ['PATH']}", "ON_NODE": str(self._bin / "on-node"), "NODE": str(self.folder), "FAULT": fault}
        return os.environ | own | more

    def run(self, script: str, fault: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        (self.folder / "calls").unlink(missing_ok=True)
        words = [EXAMPLES / script, self.rotation]
        return subprocess.run(words, env=self.environment(fault, **more), stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def embedded(self) -> Mapping[str, bytes]:
        """What the kubeconfig has in it, by its field."""
        return {field: base64.b64decode(data) for field, data in re.findall(r"([a-z-]+)-data: (\S*)", self.conf.read_text())}

    def is_whole(self) -> bool:
        """No file has lost a key or the end of a certificate, and none is left behind half written."""
        embedded = self.embedded()
        end = b"-----END CERTIFICATE-----"
        return (
            embedded["client-key"] == self.leaf.key
            and all(embedded[field].rstrip().endswith(end) for field in ("certificate-authority", "client-certificate"))
            and end in self.kubelet.read_bytes() and self.leaf.key in self.kubelet.read_bytes()
            and (self.kubernetes / "pki/ca.crt").read_bytes().rstrip().endswith(end)
            and not list(self.folder.rglob(".*.new"))
        )  # fmt: skip


def _public(key: bytes) -> bytes:
    return subprocess.run(["openssl", "pkey", "-pubout"], input=key, capture_output=True, check=True).stdout


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


# Which of the file's calls fails in each run, the others of that run being answered: every call of a rotation in its turn.
_FAULTS = [
    ("cut", "admin.conf", [2]),
    ("cut", "admin.conf", [1, 2, 3, 4, 5, 6, 5, 2]), ("lost", "admin.conf", [1, 2, 3, 4, 5, 6, 7, 2]),
    *((kind, "kubelet-client-current.pem", [1, 2, 3, 4]) for kind in ("cut", "lost")),
    *((kind, "ca.crt", [1, 2, 2]) for kind in ("cut", "lost")),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "file", "calls"), _FAULTS, ids=[f"{kind}-{file}-{len(calls)}" for kind, file, calls in _FAULTS])
def test_a_rotation_whose_connection_breaks_goes_on_when_it_is_run_again(node: Node, kind: str, file: str, calls: list[int]) -> None:
    for which in calls:
        done = node.run("rotate-ca.sh", f"{kind} {file} {which}")
        assert done.returncode != 0 and node.is_whole(), f"call {which}: {done.stdout}{done.stderr}"

    done = node.run("rotate-ca.sh")
    assert done.returncode == 0 and node.is_whole(), done.stdout + done.stderr
    new = (node.rotation / "new.crt").read_bytes()
    assert (node.kubernetes / "pki/ca.crt").read_bytes() == node.embedded()["certificate-authority"] == new
    for leaf in (node.embedded()["client-certificate"], node.kubelet.read_bytes()):
        subprocess.run(["openssl", "verify", "-partial_chain", "-CAfile", node.rotation / "new.crt"], input=leaf, check=True, capture_output=True)
    assert "pki/signing-ca.crt" in (node.kubernetes / "manifests/kube-controller-manager.yaml").read_text()


def test_a_key_of_service_accounts_that_comes_in_part_is_not_put_in_place(node: Node) -> None:
    key = node.kubernetes / "pki/sa.key"
    done = node.run("rotate-service-account-keys.sh", "cut sa.key 1")
    assert done.returncode != 0 and "not all of what should replace it has come" in done.stderr
    assert key.read_bytes() == node.old.key and not list(node.folder.rglob(".*.new"))
    done = node.run("rotate-service-account-keys.sh")
    assert done.returncode == 0 and key.read_bytes() == (node.rotation / "new.key").read_bytes(), done.stderr


@pytest.mark.parametrize(("lost", "said"), [("admin.conf", "nothing would be left of"), ("kubelet-client-current.pem", "cannot be read")])
def test_a_file_that_was_emptied_before_is_told_of(node: Node, lost: str, said: str) -> None:
    next(node.folder.rglob(lost)).write_bytes(b"")
    done = node.run("rotate-ca.sh")
    assert done.returncode != 0 and said in done.stderr and lost in done.stderr


@pytest.mark.parametrize("script", ["rotate-ca.sh", "rotate-service-account-keys.sh"])
def test_nothing_is_written_where_no_policy_is_ready(node: Node, script: str) -> None:
    before = {file: file.read_bytes() for file in node.folder.rglob("*") if file.is_file()}
    done = node.run(script, POLICY_FAULT="*", WAIT_MINUTES="0")
    assert done.returncode != 0 and "is not Ready" in done.stderr and "NotFound" in done.stderr
    asked = node.folder / "asked"
    assert len(asked.read_text().splitlines()) == 1
    assert {file: file.read_bytes() for file in node.folder.rglob("*") if file.is_file() and file != asked} == before
    assert not node.rotation.exists()


def test_a_policy_that_is_deleted_meanwhile_is_asked_for_with_pauses(node: Node) -> None:
    """Each counts for twenty seconds here."""
    text = 'sleep() { command sleep "$@"; SECONDS=$((SECONDS + 20)); }; . "$0"; await a b c'
    more = node.environment(POLICY_FAULT="*jsonpath*", WAIT_MINUTES="1")
    done = subprocess.run(["bash", "-c", text, EXAMPLES / "nodes.sh"], env=more, capture_output=True, text=True)
    assert done.returncode != 0 and "not within 1 minutes" in done.stderr
    assert set((node.folder / "slept").read_text().splitlines()) == {"2"}
    assert len((node.folder / "asked").read_text().splitlines()) <= 2 * 4
