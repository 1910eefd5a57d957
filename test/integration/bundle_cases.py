"""Random PKIs and what happens to them, as the text that bundle_driver reads (bundle/bundle_driver.c). A seed is a case."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

FIRST_DAY_S = 1_893_456_000  # of the game: 2030-01-01T00:00:00Z, as in bundle/certs.c
DAY_S = 24 * 3600
PATHS = ("policy", "domain", "domain-converged", "certgen")
_WEIGHTS = (5, 2, 1, 2)


@dataclass(frozen=True)
class Identity:
    """A CA, whatever certificates it has: a name and a key."""

    subject: str
    key: int


@dataclass(frozen=True)
class Cert:
    name: str
    own: Identity
    issuer: Identity
    start: int
    end: int
    is_ca: bool
    ski: bool
    aki: bool

    @property
    def is_root(self) -> bool:
        return self.own == self.issuer

    @property
    def line(self) -> str:
        words = [self.name, self.own.subject, self.own.key, self.issuer.subject, self.issuer.key, self.start, self.end]
        return " ".join(map(str, ["cert", *words, "ca" if self.is_ca else "leaf", int(self.ski), int(self.aki)]))

    @classmethod
    def parse(cls, line: str) -> Cert:
        _, name, subject, key, issuer, issuer_key, start, end, kind, ski, aki = line.split()
        return cls(
            name,
            Identity(subject, int(key)),
            Identity(issuer, int(issuer_key)),
            int(start),
            int(end),
            kind == "ca",
            ski == "1",
            aki == "1",
        )


@dataclass(frozen=True)
class Case:
    """Lines: `begin`, certificates, then what is published, Secrets and steps, in their order."""

    lines: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Case:
        lines = (line.strip() for line in text.splitlines())
        return cls(tuple(line for line in lines if line and not line.startswith("#")))

    @property
    def certs(self) -> dict[str, Cert]:
        found = (Cert.parse(line) for line in self.lines if line.startswith("cert "))
        return {cert.name: cert for cert in found}

    @property
    def path(self) -> str:
        return next(line.split()[1] for line in self.lines if line.startswith("begin "))

    @property
    def is_of_a_domain(self) -> bool:
        return self.path.startswith("domain")

    def days(self) -> list[int]:
        return [int(line.split()[1]) for line in self.lines if line.startswith("step ")]

    def current(self, step: int) -> set[str]:
        """The CAs that its owners say are to be trusted in that step."""
        trust: dict[str, str] = {}
        at = -1
        for line in self.lines:
            words = line.split()
            if words[0] == "secret" and words[3] != "=":
                trust[words[1]] = words[3]
            elif words[0] == "step":
                at += 1
                if at == step:
                    return {words[2]} if self.path == "certgen" else names(",".join(trust.values()))
        return set()

    def __str__(self) -> str:
        return "\n".join(self.lines) + "\n"


def names(text: str) -> set[str]:
    return {name for name in text.split(",") if name and name != "-"}


# --- how a case is thought of


@dataclass
class _Secret:
    chain: str
    trust: str


@dataclass
class _World:
    chance: random.Random
    same_name: float
    no_ids: float
    odd_time: float
    certs: list[Cert] = field(default_factory=list)
    identities: list[Identity] = field(default_factory=list)
    keys: int = 0
    day: int = 0

    def one_in(self, n: float) -> bool:
        return self.chance.random() * n < 1

    # --- certificates

    def identity(self) -> Identity:
        chance = self.chance
        subjects = [one.subject for one in self.identities]
        subject = chance.choice(subjects) if subjects and chance.random() < self.same_name else f"C{len(set(subjects))}"
        if self.identities and self.one_in(12):
            made = Identity(subject, chance.choice(self.identities).key)
        else:
            self.keys += 1
            made = Identity(subject, self.keys)
        if made not in self.identities:
            self.identities.append(made)
        return made

    def window(self) -> tuple[int, int]:
        chance = self.chance
        start = self.day - chance.choice([1, 5, 30, 100])
        if chance.random() >= self.odd_time:
            return start, self.day + chance.choice([90, 365, 1000])
        if self.one_in(2):
            return self.day + chance.randint(1, 30), self.day + 365
        return start - 20, self.day - chance.randint(-25, 1)

    def ids(self) -> bool:
        return self.chance.random() >= self.no_ids

    def ca(self, own: Identity, issuer: Identity) -> Cert:
        start, end = self.window()
        base = f"{own.subject}.{own.key}" + ("" if own == issuer else f"<{issuer.subject}.{issuer.key}")
        same = sum(cert.name.split("#")[0] == base for cert in self.certs)
        made = Cert(
            base + (f"#{same}" if same else ""),
            own,
            issuer,
            start,
            end,
            True,
            self.ids(),
            (own != issuer or self.one_in(3)) and self.ids(),
        )
        self.certs.append(made)
        return made

    def root(self) -> Cert:
        own = self.identity()
        return self.ca(own, own)

    def leaf(self, issuer: Identity) -> Cert:
        self.keys += 1
        made = Cert(
            f"leaf{len(self.certs)}",
            Identity(f"web{len(self.certs)}", self.keys),
            issuer,
            self.day - 1,
            self.day + self.chance.choice([30, 90]),
            False,
            self.ids(),
            self.ids(),
        )
        self.certs.append(made)
        return made

    def of(self, one: Identity) -> list[Cert]:
        return [cert for cert in self.certs if cert.is_ca and cert.own == one]

    # --- what stands in a Secret

    def chain(self, leaf: Cert) -> str:
        """The leaf, and some of what is above it, as who installs it has it."""
        sent = [leaf]
        while len(sent) < 4 and not self.one_in(2.5):
            above = [cert for cert in self.of(sent[-1].issuer) if cert not in sent and (not cert.is_root or self.one_in(6))]
            if not above:
                break
            sent.append(self.chance.choice(above))
        return ",".join(cert.name for cert in sent)

    def above(self, one: Identity) -> list[Cert]:
        """All that may stand above what it signs."""
        found: list[Cert] = []
        reached = [one]
        for at in reached:
            for cert in self.of(at):
                if cert not in found:
                    found.append(cert)
                if cert.issuer not in reached:
                    reached.append(cert.issuer)
        return found

    def trust(self, issuer: Identity) -> str:
        above = self.above(issuer)
        roots = [cert for cert in above if cert.is_root]
        chosen = list(above)
        if roots and not self.one_in(5):
            chosen = [self.chance.choice(roots)] if self.one_in(2) else roots
        if self.one_in(4):
            chosen = chosen + [self.chance.choice(above)] if above else chosen
        if self.one_in(8):
            chosen = chosen + [self.chance.choice([cert for cert in self.certs if cert.is_ca])]
        unique = list(dict.fromkeys(cert.name for cert in chosen))
        self.chance.shuffle(unique)
        return ",".join(unique) or "-"

    def secret(self) -> _Secret:
        issuer = self.chance.choice(self.identities)
        return _Secret(self.chain(self.leaf(issuer)), self.trust(issuer))

    # --- what changes

    def begin(self) -> None:
        for _ in range(self.chance.randint(1, 3)):
            self.root()
        for _ in range(self.chance.randint(0, 3)):
            self.cross()
        for _ in range(self.chance.randint(0, 2)):
            self.intermediate()

    def cross(self) -> Cert:
        own, issuer = self.chance.choice(self.identities), self.chance.choice(self.identities)
        return self.ca(own, issuer)

    def intermediate(self) -> Cert:
        issuers = self.chance.sample(self.identities, min(len(self.identities), self.chance.randint(1, 2)))
        own = self.identity()
        return [self.ca(own, issuer) for issuer in issuers][-1]

    def rollover(self) -> Cert:
        """The same name with another key; maybe the one signs the other, or both (RFC 4210, section 4.4)."""
        old = self.chance.choice(self.identities)
        self.keys += 1
        fresh = Identity(old.subject, self.keys)
        self.identities.append(fresh)
        if self.one_in(3):
            self.ca(fresh, old)
        if self.one_in(3):
            self.ca(old, fresh)
        return self.ca(fresh, fresh)

    def renewal(self) -> Cert:
        again = self.chance.choice([cert for cert in self.certs if cert.is_ca])
        return self.ca(again.own, again.issuer)

    def successor(self) -> Cert:
        old = self.chance.choice(self.identities)
        made = self.root()
        if self.one_in(3):
            self.ca(made.own, old)
        if self.one_in(6):
            self.ca(old, made.own)
        return made

    def new_ca(self) -> Cert:
        makers = [self.successor, self.successor, self.renewal, self.rollover, self.cross, self.intermediate]
        return self.chance.choice(makers)()


def _change(world: _World, secret: _Secret) -> None:
    chance = world.chance
    kept = secret.trust.split(",")
    how = chance.randrange(6)
    if how == 0:  # another CA, and nothing else yet
        secret.trust = world.new_ca().name
    elif how == 1:  # another CA and a leaf of it
        made = world.new_ca()
        secret.chain = world.chain(world.leaf(made.own))
        secret.trust = made.name if world.one_in(2) else world.trust(made.own)
    elif how == 2:  # one more, or one less
        if len(kept) > 1 and world.one_in(2):
            kept.remove(chance.choice(kept))
        else:
            kept.insert(chance.randint(0, len(kept)), world.new_ca().name)
        secret.trust = ",".join(dict.fromkeys(name for name in kept if name != "-")) or "-"
    elif how == 3:  # the leaf renewed by some CA, its chain another one
        secret.chain = world.chain(world.leaf(chance.choice(world.identities)))
    elif how == 4:  # the same leaf by another way
        name = secret.chain.split(",")[0]
        secret.chain = world.chain(next(cert for cert in world.certs if cert.name == name))
    else:
        secret.trust = world.trust(chance.choice(world.identities))


def _lines(secrets: Sequence[_Secret]) -> Iterator[str]:
    for i, secret in enumerate(secrets):
        yield f"secret s{i} {secret.chain} {secret.trust}"


def make(seed: int, path: str | None = None) -> Case:
    chance = random.Random(f"bundles {seed}")
    path = path or chance.choices(PATHS, _WEIGHTS)[0]
    world = _World(
        chance,
        same_name=chance.choice([0, 0.3, 0.8]),
        no_ids=chance.choice([0, 0, 0.3, 1]),
        odd_time=chance.choice([0, 0.1, 0.4]),
    )
    world.begin()
    secrets = [world.secret() for _ in range(chance.randint(1, 3))]
    lines: list[str] = []
    if path == "policy" and world.one_in(2):
        cas = [cert.name for cert in world.certs if cert.is_ca]
        lines.append("published " + ",".join(chance.sample(cas, chance.randint(1, len(cas)))))
    else:
        lines += [*_lines(secrets), f"step 0 {secrets[0].trust.split(',')[0]}"] if path != "certgen" else _lines(secrets)
    for _ in range(chance.randint(1, 4)):
        if world.one_in(5):
            world.day += chance.choice([5, 20])
        if path == "certgen":
            authority = world.new_ca()
            lines.append(f"step {world.day} {authority.name}")
            for secret in secrets:
                if not world.one_in(3):
                    secret.chain = world.chain(world.leaf(authority.own))
                secret.trust = "="
            lines += _lines(secrets)
            continue
        for secret in chance.sample(secrets, chance.randint(1, len(secrets))):
            _change(world, secret)
        lines += [*_lines(secrets), f"step {world.day} -"]
    head = f"begin {path} {chance.randint(0, 3)}"
    return Case((head, *(cert.line for cert in world.certs), *lines))
