"""A real Prometheus, with the rules of the manifests, but for how long they wait: minutes become seconds. That they wait is for promtool
(test_metrics.py)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

from control_plane import ROOT, ControlPlane, wait_until

sys.path[:0] = [str(ROOT / "hack" / "lib")]

from certroll_dev.demo import programs  # noqa: E402

RULES = ROOT / "manifests" / "components" / "prometheus-rules" / "rules.yaml"
_ADDRESS = "127.0.0.1:19090"
_WAIT = "2s"
_READY_S = 180.0
_FIRING_S = 180.0


def program(name: str = "prometheus") -> Path:
    """`prometheus` or `promtool`, of the distribution's package."""
    return programs.debian(programs.PROMETHEUS).root / "usr" / "bin" / name


class Prometheus:
    """One that scrapes an operator at that port and evaluates each second. Use it as a context."""

    def __init__(self, plane: ControlPlane, folder: Path, port: int, scheme: str = "http") -> None:
        """With `https` the operator's certificate is not looked at."""
        self._plane, self._program, self._folder = plane, program(), folder
        self.scrape(port)
        groups: Any = yaml.safe_load(RULES.read_text())["spec"]
        for group in groups["groups"]:
            for rule in group["rules"]:
                if "alert" in rule:
                    rule["for"] = _WAIT if "for" in rule else "0s"
        (folder / "rules.yaml").write_text(yaml.safe_dump(groups))
        (folder / "prometheus.yaml").write_text(yaml.safe_dump({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yaml"],
            "scrape_configs": [{
                "job_name": "certroll", "honor_labels": True, "file_sd_configs": [{"files": ["targets.json"]}],
                "scheme": scheme, "tls_config": {"insecure_skip_verify": True}}],
        }))  # fmt: skip

    def scrape(self, port: int) -> None:
        """This one from now on."""
        new = self._folder / "targets.new"
        new.write_text(json.dumps([{"targets": [f"127.0.0.1:{port}"], "labels": {"instance": "operator"}}]))
        new.rename(self._folder / "targets.json")

    def __enter__(self) -> Prometheus:
        with (self._folder / "prometheus.log").open("w") as log:
            self._process = self._plane.popen(
                [self._program, f"--config.file={self._folder}/prometheus.yaml", f"--storage.tsdb.path={self._folder}/tsdb",
                 f"--web.listen-address={_ADDRESS}"], stdout=log, stderr=log,
            )  # fmt: skip
        wait_until("Prometheus to be ready", lambda: self._get("/-/ready").returncode == 0, _READY_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()

    def firing(self) -> set[tuple[str, str]]:
        """Name, without `Certroll`, and of which policy or trust domain."""
        answer = json.loads(self._get("/api/v1/alerts").stdout)
        alerts = [each["labels"] for each in answer["data"]["alerts"] if each["state"] == "firing"]
        return {(labels["alertname"].removeprefix("Certroll"), labels.get("policy", labels.get("domain", ""))) for labels in alerts}

    def query(self, text: str) -> list[Any]:
        """The series that it answers with; fails when it refuses the query."""
        words = ("curl", "-sS", "--max-time", "10", "--get", "--data-urlencode", f"query={text}", f"http://{_ADDRESS}/api/v1/query")
        answer = json.loads(self._plane.run(*words).stdout)
        assert answer["status"] == "success", f"{text}: {answer}"
        found: list[Any] = answer["data"]["result"]
        return found

    def wait_exactly(self, expected: set[tuple[str, str]]) -> None:
        """Until these fire, and no others."""
        try:
            wait_until("the alerts", lambda: self.firing() == expected, _FIRING_S)
        except AssertionError:
            firing = self.firing()
            raise AssertionError(f"missing: {sorted(expected - firing)}; too many: {sorted(firing - expected)}") from None

    def _get(self, path: str) -> Any:
        return self._plane.run("curl", "-sSf", "--max-time", "10", f"http://{_ADDRESS}{path}", check=False)
