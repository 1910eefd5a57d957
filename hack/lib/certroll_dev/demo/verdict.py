"""What must have been seen after each change, each checked on the pods and calls themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from certroll_dev.demo.scenario import Outcome
from certroll_dev.demo.workloads import ENVOY, NGINX, RATE_LIMIT, Workload


@dataclass(frozen=True)
class Check:
    what: str
    holds: bool

    def __str__(self) -> str:
        return f"{'✓' if self.holds else '✗'} {self.what}"


def leaf_checks(outcome: Outcome) -> list[Check]:
    """Leaves renewed by the same CA: only nginx, which reads its certificate once, has to be restarted."""
    return [
        *_hot_reloaded(outcome, ENVOY, "file SDS"),
        *_hot_reloaded(outcome, RATE_LIMIT, "it watches its server certificate"),
        *_rolled(outcome, NGINX, "it reads its certificate once"),
        Check("no call failed", not any(summary.failed for summary in outcome.calls)),
    ]


def ca_checks(outcome: Outcome, envoy_trusts_new_ca: bool, calls_recovered: bool) -> list[Check]:
    """The CA changed: Rate Limit, which reads it once, has to be restarted too, Envoy still not."""
    return [
        *_hot_reloaded(outcome, ENVOY, "file SDS"),
        Check("envoy: every pod trusts the new CA (its own /certs page)", envoy_trusts_new_ca),
        *_rolled(outcome, RATE_LIMIT, "it reads its CA once"),
        *_rolled(outcome, NGINX, "it reads its certificate once"),
        Check("calls succeed again", calls_recovered),
    ]


def trust_first_checks(outcome: Outcome, envoy_trusts_new_ca: bool) -> list[Check]:
    """What reads its files once is restarted for each stage that changes one of them; no call may fail."""
    return [
        Check("envoy: no pod touched (file SDS)", outcome.untouched(ENVOY) and outcome.rollouts(ENVOY) == 0),
        Check("envoy: every pod trusts the new CA (its own /certs page)", envoy_trusts_new_ca),
        *[
            Check(f"{workload.consumer}: rolled {words}", outcome.replaced(workload) and outcome.rollouts(workload) == times)
            for workload, times, words in (
                (RATE_LIMIT, 1, "once (it reads its CA once)"),
                (NGINX, 2, "twice (it reads its CA and its certificate once)"),
            )
        ],
        *[Check(f"{w.consumer}: every pod serves the new certificate", outcome.served[w.consumer]) for w in (ENVOY, RATE_LIMIT, NGINX)],
        Check("no call failed", not any(summary.failed for summary in outcome.calls)),
    ]


def all_hold(checks: Sequence[Check]) -> bool:
    return all(check.holds for check in checks)


def _hot_reloaded(outcome: Outcome, workload: Workload, why: str) -> list[Check]:
    name = workload.consumer
    return [
        Check(f"{name}: no pod touched ({why})", outcome.untouched(workload) and outcome.rollouts(workload) == 0),
        Check(f"{name}: every pod serves the new certificate", outcome.served[name]),
        Check(f"{name}: decision HotReload (seen: {_decision(outcome, workload)})", _decision(outcome, workload) == "HotReload"),
    ]


def _rolled(outcome: Outcome, workload: Workload, why: str) -> list[Check]:
    name = workload.consumer
    return [
        Check(f"{name}: rolled once ({why})", outcome.replaced(workload) and outcome.rollouts(workload) == 1),
        Check(f"{name}: every pod serves the new certificate", outcome.served[name]),
        Check(f"{name}: decision Restart (seen: {_decision(outcome, workload)})", _decision(outcome, workload) == "Restart"),
    ]


def _decision(outcome: Outcome, workload: Workload) -> str:
    return outcome.decisions.get(workload.consumer, "none")
