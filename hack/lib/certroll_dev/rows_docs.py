"""docs/control-plane-rows.md: what test/e2e/test_control_plane_rows.py has seen, as a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULT = Path("test/testdata/control-plane-rows.json")
_INTRODUCTION = """\
<!-- Made by `hack/docs rows` from {result}, which the test writes that is named below: edit neither by hand. -->

# What Kubernetes' own programs take up by themselves

Each parameter of the certificates, keys and CAs of a cluster's own programs, by the rows of Table 1 of openFuyao's "Certificate Hot
Reload": what certroll predicts of it ([catalogue.md](catalogue.md), as `certroll-node-agent inspect` says it of what the programs were started
with; of CoreDNS and a kubelet that joins, which no agent looks at, the catalogue itself), and what real programs were seen to do. Kubernetes {kubernetes}, etcd {etcd}, CoreDNS {coredns}. Each run of

    build/venv/bin/python -m pytest test/e2e/test_control_plane_rows.py            # 8 to 10 minutes, of which 5 are a wait
    build/venv/bin/python -m pytest test/e2e/test_control_plane_rows.py --write-docs   # and this table, with `hack/docs rows`

fails where a program does something else than predicted, and where the predictions here are not those of the product any more.

**How it is seen.** From outside only: the leaf that is served, a client of a new CA that is let in, the client certificate that a peer sees, a
server of a new CA that is called, the key of a token or in the JWKS, the issuer of a signed request, `kube-root-ca.crt`. The files are swapped as a kubelet
swaps a Secret's (`..data`); *kubeadm certs renew* writes in place. A bundle keeps its CA and gets the new one, as in the first step of a rotation.
Seconds are from the swap, or from the beginning of the restart, to the look that saw it ({machine}; looks are up to a second apart, and some take seconds themselves).
What was *not* taken up was looked for as long as is said there, while what was there before was seen to work; only then was the program
told, or restarted. It is all about new connections: open ones are ended by the test, which not every program does by itself.

**Where.** What kubeadm does not set, and what would take the cluster with it, is tried with programs of the same version beside the cluster's own: two API
servers on the cluster's etcd, controller managers, a scheduler, etcd, CoreDNS. Kubelets, kube-proxy and what kubeadm renews are the cluster's.

| # | component | parameter | role | predicted | observed | seconds |
| ---: | --- | --- | --- | --- | --- | ---: |
"""


def render(_page: str, root: Path) -> str:
    """The whole page; what was there before does not matter."""
    about: dict[str, str] = json.loads((root / RESULT).read_text())["about"]
    return _INTRODUCTION.format(result=RESULT, **about) + "".join(map(_line, lines(root)))


def lines(root: Path) -> list[dict[str, Any]]:
    """Of the table, as the test has written them."""
    found: list[dict[str, Any]] = json.loads((root / RESULT).read_text())["rows"]
    return found


def _line(row: dict[str, Any]) -> str:
    parameters = "<br>".join(f"`{name}`" for name in row["parameters"])
    extras = [f"of `{row['via']}`" if row["via"] else "", f"*{row['note']}*" if row["note"] else ""]
    parameter = "<br>".join([parameters, *(text for text in extras if text)])
    seconds = "" if row["seconds"] is None else f"{row['seconds']:g}"
    cells = [str(row["row"]), row["component"], parameter, f"`{row['role']}`", row["predicted"], row["observed"], seconds]
    return "| " + " | ".join(cells) + " |\n"
