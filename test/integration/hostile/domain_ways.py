"""Trust domains that cost who issues and publishes for them."""

from __future__ import annotations

from typing import Any

from .tenant import Object, Tenant, Way

_LEAVES, _TARGETS, _RING = 64, 32, 6
_DEAR = {"algorithm": "RSA", "size": 4096}


class Domains:
    def __init__(self, tenant: Tenant, good: Object) -> None:
        self._tenant, self._good = tenant, good

    def prepare(self) -> None:
        self._tenant.secret("password", {"password": "eHh4eHh4"}, "Opaque")
        issued = [
            {"name": f"leaf-{at}", "source": {"type": "Issue", "issue": {"dnsNames": _names(at), "privateKey": _DEAR}}, "keystore": _keystore()}
            for at in range(_LEAVES)
        ]
        targets = [{"kind": "ConfigMap", "name": f"bundle-{at}"} for at in range(_TARGETS)]
        self._domain("dear", authority={"type": "Issue", "issue": {"caSecretName": "dear-ca", "privateKey": _DEAR}}, leaves=issued)
        self._domain("bundles", authority={"type": "Issue", "issue": {"caSecretName": "bundles-ca"}}, trustTargets=targets)
        for at in range(_RING):
            source = {"type": "Mirror", "mirror": {"secretName": f"mirror-{(at + 1) % _RING}"}}
            self._domain(f"mirror-{at}", leaves=[{"name": f"mirror-{at}", "source": source}])
        consent = {"certroll.dev/trust-domain": f"{self._tenant.namespace}/mirror-0"}
        self._tenant.secret("mirror-0", self._good, annotations=consent)

    def ways(self) -> list[Way]:
        return [
            Way(self.sixty_four_keys_for_a_word, 20), Way(self.mirrors_of_mirrors, 0.5), Way(self.consent_given_and_taken, 0.5),
            Way(self.what_is_published_is_written_over, 0.5), Way(self.another_password, 5),
        ]  # fmt: skip

    def _domain(self, name: str, **spec: Any) -> None:
        self._tenant.put("trustdomains", name, {"spec": spec})

    def sixty_four_keys_for_a_word(self, turn: int) -> None:
        """64 RSA keys of 4,096 bits, and as many keystores, are made for one edit of a token."""
        self._tenant.merge("trustdomains", "dear", {"spec": {"rotate": {"token": f"t{turn}", "what": ("Leaves", "CA")[turn % 2]}}})

    def mirrors_of_mirrors(self, turn: int) -> None:
        """Each domain publishes what the next one has published, in a ring."""
        at = turn % _RING
        self._tenant.merge("trustdomains", f"mirror-{at}", {"spec": {"suspend": turn % 4 == 0, "retainPrevious": turn % 9}})

    def consent_given_and_taken(self, turn: int) -> None:
        """A target is asked for its consent right before each write, and says another thing each time."""
        owner = f"{self._tenant.namespace}/mirror-{turn % 2}" if turn % 3 else None
        self._tenant.merge("secrets", "mirror-0", {"metadata": {"annotations": {"certroll.dev/trust-domain": owner}}})

    def what_is_published_is_written_over(self, turn: int) -> None:
        """Who owns the namespace writes what certroll has published there, and certroll publishes it again."""
        self._tenant.merge("configmaps", f"bundle-{turn % _TARGETS}", {"data": {"ca.crt": "x" * 100_000}})

    def another_password(self, turn: int) -> None:
        """All keystores have to be written anew."""
        self._tenant.merge("secrets", "password", {"stringData": {"password": f"{turn:0256d}"}})


def _names(at: int) -> list[str]:
    return [f"{at}.{'a' * 60}.{number}.example" for number in range(32)]


def _keystore() -> Object:
    return {"passwordSecretRef": {"name": "password"}}
