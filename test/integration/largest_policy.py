"""A policy as large as the schema lets it be, with a status as large as pkg/api/status_encode.c makes it."""

from __future__ import annotations

_SECRETS, CONSUMERS, _CAS, _OPAQUE = 64, 128, 6, 2  # what is in the spec; of each list, its share of the status
_WHOLE, IN_FORCE = 100, 512  # consumers told of in full; all that there may be, with those that are found
_HEX = "f" * 64
_TIME = "2026-11-21T06:10:21Z"
_RESTARTS = ["2026-11-21T06:10:21.123000Z"] * 5
_STEPS = ["0a1b2c3d4e5f/3"] * 5
_VERIFICATION = {"of": "f" * 16, "at": _TIME, "until": _TIME}


def _name(number: int, length: int) -> str:
    return f"{number:0{length}d}"


def listed() -> dict[str, object]:
    keys = {"certificate": "c" * 253, "privateKey": "k" * 253, "trust": "t" * 253, "opaque": [_name(i, 253) for i in range(16)]}
    reload = {role: {"method": "Restart"} for role in ("serverLeaf", "clientLeaf", "clientCA", "serverCA", "opaque")}
    return {
        "secrets": [{"name": _name(i, 253), "keys": keys} for i in range(_SECRETS)],
        "consumers": [
            {
                "name": _name(i, 63),
                "targetRef": {"kind": "Deployment", "name": _name(i, 253)},
                "reload": reload,
                "verify": {"port": 8443, "serverName": "s" * 60 + ".example"},
            }
            for i in range(CONSUMERS)
        ],
    }


def found() -> dict[str, object]:
    return {"secrets": [{"name": _name(i, 253)} for i in range(_SECRETS)], "discover": {"enabled": True}}


def _material() -> dict[str, object]:
    return {
        "leaf": _HEX, "chain": _HEX, "key": _HEX, "serial": "f" * 40, "keyType": "ECDSA-P256", "issuer": _HEX, "notAfter": _TIME,
        "names": ["n" * 253],
        "anchors": [_HEX] * _CAS,
        "trust": [{"fingerprint": _HEX, "identity": _HEX, "subject": "f" * 16, "notAfter": _TIME}] * _CAS,
        "opaque": "01234567:" + _HEX,
        "opaqueKeys": ["k" * 250 + f"{i}=0123456789abcdef" for i in range(_OPAQUE)],
    }  # fmt: skip


def status(in_force: int) -> dict[str, object]:
    pending = {
        "id": "0" * 12, "since": _TIME, "first": _TIME, "changes": ["LeafRenewed", "KeyChanged", "IssuerChanged", "OpaqueChanged"],
        "target": _material(), "oldLeaves": [_HEX] * 8, "opaqueKeys": ["k" * 250] * _OPAQUE,
    }  # fmt: skip
    problem = {"reason": "UnparsableMaterial", "message": "x" * 864}
    consumer = {
        "targetRef": {"kind": "Deployment", "name": "w" * 253}, "component": "envoyproxy/ratelimit", "decision": "Restart",
        "reason": "x" * 400, "state": "Blocked", "blockedReason": "KeyTypeNotAccepted", "blockedBy": "x" * 511, "lastRestart": _TIME, "since": _TIME,
        "restartedFor": "x" * 831, "restartedGeneration": 7, "restarts": _RESTARTS, "restartSteps": _STEPS, "examples": ["e" * 256] * 5,
        "verification": _VERIFICATION,
        "pods": {"total": 1000, "verified": 1000, "inferred": 1000, "stale": 1000, "unknown": 1000},
    }  # fmt: skip
    brief = {
        "targetRef": consumer["targetRef"], "state": "Blocked", "blockedReason": "KeyTypeNotAccepted", "since": _TIME,
        "restartedFor": "x" * 103, "restartedGeneration": 7, "restarts": _RESTARTS, "restartSteps": _STEPS[:2],
        "verification": {"of": "f" * 16, "until": _TIME},
    }  # fmt: skip
    return {
        "secrets": [
            {"name": _name(i, 253), "observedResourceVersion": "9" * 20, "notAfter": _TIME, "settled": _material(),
             "trustBy": "FirstSight", "leafBy": "FirstSight", "settledAt": _TIME, "pending": pending, "problem": problem}
            for i in range(_SECRETS)
        ],
        "consumers": [{"name": _name(i, 63), **(consumer if i < _WHOLE else brief)} for i in range(in_force)],
        "conditions": [
            {"type": kind, "status": "True", "observedGeneration": 7, "lastTransitionTime": _TIME, "reason": "R", "message": "x" * 4096}
            for kind in ("Ready", "Converged", "Rotating", "Blocked", "Degraded", "ExpiringSoon", "Conflict", "Reconciling", "Stalled")
        ],
    }  # fmt: skip
