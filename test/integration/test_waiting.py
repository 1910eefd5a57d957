"""How docs/operations.md has a script wait for a change: by what it has written, so that neither a status of before nor an
operator that does not run is taken for an answer. The commands are those of the page."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest

import manifests
from control_plane import ROOT, ControlPlane
from operators import LEASES, RULES, Operator, account
from paper_pods import PaperPods
from rotations import direct

from certroll_dev.demo import pki  # noqa: E402  (rotations has its folder)

_PAGE = ROOT / "docs" / "operations.md"
_NAME, _SECRET = "server", "server-tls"

pytestmark = pytest.mark.timeout(300)


def _script(namespace: str, timeout: str) -> str:
    section = _PAGE.read_text().split("## Waiting in a script", 1)[1]
    text = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert text and "-n shop" in text[1] and "--timeout=15m" in text[1]
    return "set -e\n" + text[1].replace("-n shop", f"-n {namespace}").replace("--timeout=15m", f"--timeout={timeout}")


def _run(plane: ControlPlane, script: str) -> subprocess.CompletedProcess[str]:
    words = plane.command(["bash", "-c", script])
    return subprocess.run(words, env=plane.environment(), capture_output=True, text=True, timeout=120, check=False)


def test_a_script_waits_for_what_it_has_written(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    kubeconfig = account(control_plane, namespace, "operator", [*RULES, LEASES], tmp_path)
    authority = pki.new_authority(1)

    def put() -> None:
        made = authority.issue(_SECRET)
        data = {"tls.crt": made.certificate, "tls.key": made.key, "ca.crt": made.trust}
        api.apply("secrets", manifests.secret(namespace, _SECRET, data))

    with direct(control_plane) as api, PaperPods(api, [namespace]):
        put()
        api.apply("deployments", manifests.deployment(namespace, _NAME, _SECRET))
        spec = {"secrets": [{"name": _SECRET}], "consumers": manifests.listed(_NAME)}
        api.apply("certrotationpolicies", manifests.policy(namespace, _NAME, spec))

        def operator() -> Operator:
            return Operator(control_plane, namespace, "operator", kubeconfig, tmp_path, "--leader-elect=false", f"--operator-namespace={namespace}")

        first = operator()
        try:
            met = _run(control_plane, _script(namespace, "60s"))
            assert met.returncode == 0, met.stderr
        finally:
            first.end()

        # Nobody runs: what the condition says is of before, and the script is not taken in.
        put()
        stale = control_plane.kubectl("-n", namespace, "wait", f"crp/{_NAME}", "--for=condition=Converged", "--timeout=3s", check=False)
        assert stale.returncode == 0, "then the page need not warn of it"
        waited = _run(control_plane, _script(namespace, "3s"))
        assert waited.returncode != 0 and "timed out" in waited.stderr, waited

        second = operator()
        try:
            began = time.monotonic()
            met = _run(control_plane, _script(namespace, "60s"))
            assert met.returncode == 0, met.stderr
            policy = api.get("certrotationpolicies", namespace, _NAME)
            assert manifests.converged(policy), f"met {time.monotonic() - began:.1f} s after the start, and it is not so: {policy['status']}"
        finally:
            second.end()
