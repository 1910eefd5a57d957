"""Who verified with the bundle that was published before must verify with the one after it.

Random PKIs and rotations (bundle_cases.py) go through the code that certroll publishes with, for policies, trust domains
and certgen; OpenSSL as three clients, Envoy, Go and GnuTLS judge each leaf that the product knew, before and after. A leaf that
is cut off is a failure, unless no bundle at all would have kept everybody: that is proved, by trying them.

    python bundle_game.py --seed 1 --cases 20000     a long run
    python bundle_game.py --file CASE                a case as text, for one that was found
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bundle_cases import DAY_S, FIRST_DAY_S, PATHS, Case, Cert, make
from bundle_clients import CLIENTS, OPENSSL, Bundle, Clients, Played, Question

_TRIES_MAX = 200_000  # bundles that a proof looks at
_CHUNK = 1_000  # of them at a time
_BATCH = 100  # cases at a time
_AT_ONCE = 8  # cases that may be the next smaller one
# Of two CAs of one name OpenSSL takes the first, and GnuTLS may take the other. Where no bundle keeps both, it is to keep
# these. Nor is GnuTLS to be kept at the price of a CA that a domain's plan wants, since somebody may need it of whom the
# game knows nothing, or of a leaf that the domain is about to serve.
_FIRST = (*OPENSSL, "envoy", "go")


@dataclass(frozen=True)
class Loss:
    """A leaf that a client verified with the bundle before, and not with the one after."""

    bundle: Bundle
    client: str
    chain: str
    better: tuple[str, ...] = ()  # a bundle that keeps everybody

    def __str__(self) -> str:
        b = self.bundle
        return (
            f"step {b.step} (day {b.day}), {b.place}: {self.client} verified {self.chain} with [{' '.join(b.before)}] and "
            f"does not with [{' '.join(b.after)}]" + (f"; [{' '.join(self.better)}] would do" if self.better else "")
        )


@dataclass
class Outcome:
    case: Case
    played: Played
    losses: list[Loss] = field(default_factory=list)
    impossible: list[Loss] = field(default_factory=list)  # no bundle would have kept everybody, nor all but GnuTLS
    undecided: list[Loss] = field(default_factory=list)  # too many bundles to try
    refusals: tuple[str, ...] = ()
    bundles: int = 0
    verified: Counter[str] = field(default_factory=Counter)  # by client: how often it had a leaf to lose

    @property
    def failures(self) -> list[Loss]:
        return self.losses + self.undecided


# --- the cases of a batch, side by side


_Thought = Generator[list[Question], None, Outcome]  # asks, finds the answers in Played, and comes to an end
_Pair = tuple[str, str]  # client, chain


def play(clients: Clients, cases: Sequence[Case], tries: int = _TRIES_MAX) -> list[Outcome]:
    played = clients.play(cases)
    outcomes: dict[int, Outcome] = {}
    thoughts = {i: _judge(case, played[i], tries) for i, case in enumerate(cases)}
    while thoughts:
        asked: list[tuple[Played, list[Question]]] = []
        for i, thought in list(thoughts.items()):
            try:
                asked.append((played[i], next(thought)))
            except StopIteration as end:
                outcomes[i] = end.value
                del thoughts[i]
        clients.ask(asked)
    return [outcomes[i] for i in range(len(cases))]


def _judge(case: Case, played: Played, tries: int) -> _Thought:
    outcome = Outcome(case, played, refusals=played.refusals, bundles=len(played.bundles))
    changes = changed(played)
    yield [
        Question(client, bundle.day, roots, chain)
        for bundle in changes
        for client, chain in itertools.product(CLIENTS, (*bundle.leaves, *bundle.expected))
        for roots in (bundle.before, bundle.after)
    ]
    proved: dict[tuple[object, ...], tuple[str, ...] | None] = {}
    for bundle in changes:
        held = _held(played, [bundle])
        lost = [pair for pair in held if not _verifies(played, bundle, bundle.after, pair)]
        outcome.verified.update(client for client, _ in held)
        if not lost:
            continue
        same_for = bundle
        if case.path == "certgen":  # all Secrets of the set get this bundle: it has to keep the clients of each
            beside = [other for other in changes if (other.step, other.after) == (bundle.step, bundle.after)]
            held = _held(played, beside)
            same_for = replace(bundle, before=tuple(dict.fromkeys(name for other in beside for name in other.before)))
        for who in (CLIENTS, _FIRST):
            own_held, own_lost = ([pair for pair in pairs if pair[0] in who] for pairs in (held, lost))
            wanted: tuple[str, ...] = ()
            if who is CLIENTS:
                own_held += _held(played, [replace(bundle, leaves=bundle.expected)])
                wanted = bundle.wanted
            same = (bundle.step, same_for.before, bundle.after, tuple(own_held), wanted)
            if own_lost and same not in proved:
                proved[same] = yield from _find_bundle(case, played, same_for, own_held, own_lost, wanted, tries)
            kept = proved[same] if own_lost else None
            if kept is not None:
                where = outcome.losses if kept else outcome.undecided
                where += [Loss(bundle, client, chain, kept) for client, chain in own_lost]
                break
        else:
            outcome.impossible += [Loss(bundle, client, chain) for client, chain in lost]
    return outcome


def changed(played: Played) -> list[Bundle]:
    """Where a client had something to lose."""
    return [bundle for bundle in played.bundles if bundle.before and bundle.before != bundle.after]


def _held(played: Played, bundles: Iterable[Bundle]) -> list[_Pair]:
    """Who verified which leaf with any of what was published."""
    found = (
        pair
        for bundle in bundles
        for pair in itertools.product(CLIENTS, bundle.leaves)
        if _verifies(played, bundle, bundle.before, pair)
    )
    return list(dict.fromkeys(found))


def _verifies(played: Played, bundle: Bundle, roots: tuple[str, ...], pair: _Pair) -> bool:
    return played.answers[Question(pair[0], bundle.day, roots, pair[1])]


def of_the_model(question: Question) -> Question:
    """The same, of the product's model of that client."""
    return replace(question, client=f"model-{question.client}")


# --- the proof


def _find_bundle(
    case: Case, played: Played, bundle: Bundle, held: Sequence[_Pair], lost: Sequence[_Pair], wanted: Collection[str], tries: int
) -> Generator[list[Question], None, tuple[str, ...] | None]:
    """A bundle that has what is new of this one and what is wanted, and keeps everybody. None: there is none. (): too many to try."""
    certs = case.certs
    current = case.current(bundle.step)
    must = [name for name in bundle.after if name in current or name in wanted]
    at_hand = dict.fromkeys([*bundle.after, *bundle.before, *sorted(current)])
    may = [name for name in at_hand if name not in must and certs[name].end > bundle.day]
    concerned = _concerned(case, at_hand, [chain for _, chain in held], {chain for _, chain in lost})
    fixed = tuple(name for name in (*must, *may) if certs[name].own.subject not in concerned)
    orders = _orders(
        certs, bundle.day, fixed, [name for name in must if name not in fixed], [name for name in may if name not in fixed]
    )
    above = {chain: _above(case, at_hand, chain) for _, chain in held}
    asked: dict[object, Question] = {}

    def question(pair: _Pair, roots: Iterable[str]) -> Question:
        """Of the certificates that can matter to that leaf; and of bundles in which the client sees the same, the first."""
        client, chain = pair
        seen = [certs[name] for name in roots if certs[name].own.subject in above[chain]]
        own = view_of(client, bundle.day, [certs[name] for name in chain.split(",")], seen)
        return asked.setdefault((pair, own), Question(client, bundle.day, tuple(cert.name for cert in seen), chain))

    pairs = sorted(held, key=lambda pair: pair not in lost)
    for _ in range(0, tries, _CHUNK):
        chunk = list(itertools.islice(orders, _CHUNK))
        if not chunk:
            return None
        for pair in pairs:
            yield [question(pair, roots) for roots in chunk]
            chunk = [roots for roots in chunk if played.answers[question(pair, roots)]]
            if not chunk:
                break
        if chunk:
            return chunk[0]
    return ()


def _concerned(case: Case, at_hand: Iterable[str], held: Sequence[str], lost: set[str]) -> set[str]:
    """The subjects that matter to the leaves that were lost, and to all others that any of these matter to."""
    certs = case.certs
    above = {chain: _above(case, at_hand, chain) for chain in held}
    concerned = set[str]().union(*(above[chain] for chain in lost))
    while more := set[str]().union(*(names for names in above.values() if names & concerned)) - concerned:
        concerned |= more
    return concerned & {certs[name].own.subject for name in at_hand}


def _above(case: Case, at_hand: Iterable[str], chain: str) -> set[str]:
    """Subjects that may stand above a leaf, by names; its own, too."""
    certs = case.certs
    sent = chain.split(",")
    usable = [certs[name] for name in (*sent, *at_hand)]
    reached = {certs[sent[0]].own.subject}
    while more := {cert.issuer.subject for cert in usable if cert.own.subject in reached} - reached:
        reached |= more
    return reached


def _orders(
    certs: Mapping[str, Cert], day: int, fixed: tuple[str, ...], must: Sequence[str], may: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """All subsets, the largest first, in all orders that matter: verifiers look certificates up by their subject."""
    for size in range(len(may), -1, -1):
        for chosen in itertools.combinations(may, size):
            groups: dict[str, list[Cert]] = {}
            for name in (*must, *chosen):
                groups.setdefault(certs[name].own.subject, []).append(certs[name])
            for order in itertools.product(*(orders_of_a_subject(group, day) for group in groups.values())):
                yield (*fixed, *(cert.name for cert in itertools.chain.from_iterable(order)))


def view_of(client: str, day: int, sent: Sequence[Cert], roots: Sequence[Cert]) -> object:
    """What decides a client's answer: which certificates there are, and which it takes where several fit."""
    all_of_them = frozenset(cert.name for cert in roots)
    if client == "go":
        return all_of_them
    wanted = {(cert.issuer.subject, cert.issuer.key if cert.aki else None) for cert in (*sent, *roots)}
    taken: list[Cert] = []
    for subject, key in sorted(wanted, key=str):
        fit = [cert for cert in roots if cert.own.subject == subject and (key is None or not cert.ski or cert.own.key == key)]
        valid = [cert for cert in fit if cert.start <= day <= cert.end]
        if client == "envoy":  # valid or not
            taken += fit[:1]
        else:
            taken += (valid[-1:] if client == "gnutls" else valid[:1]) or fit
    if client == "gnutls":  # what is trusted of the same name and key ends the chain: the first of them
        taken += sorted({cert.own: cert for cert in reversed(roots)}.values(), key=str)
    return all_of_them, tuple(taken)


def orders_of_a_subject(certs: Sequence[Cert], day: int) -> Iterator[tuple[Cert, ...]]:
    """One of each that clients take for the same, the first of them by the order of `certs`.

    A client takes the first or the last that fits, and may look at the first of a key. So two neighbours that are neither
    may change places.
    """
    yield from _extend((), tuple(certs), day)


def _extend(order: tuple[Cert, ...], rest: tuple[Cert, ...], day: int, skipped: int = 0) -> Iterator[tuple[Cert, ...]]:
    """`skipped`: so many of the rest stand before the last of the order."""
    if not rest:
        yield order
    for i, cert in enumerate(rest):
        behind = rest[:i] + rest[i + 1 :]
        if i >= skipped or not may_change_places(order[-1], cert, order[:-1], behind, day):
            yield from _extend((*order, cert), behind, day, i)


def may_change_places(one: Cert, other: Cert, before: Sequence[Cert], behind: Sequence[Cert], day: int) -> bool:
    return (
        any(_stands_in(cert, one, other, day) for cert in before)
        and any(_stands_in(cert, one, other, day) for cert in behind)
        and (one.own.key != other.own.key or any(cert.own.key == one.own.key for cert in before))
    )


def _stands_in(cert: Cert, one: Cert, other: Cert, day: int) -> bool:
    """It fits wherever these two do, by their key identifiers, and is valid."""
    wanted = {each.own.key for each in (one, other) if each.ski}
    fits = len(wanted) > 1 or not cert.ski or cert.own.key in wanted
    return fits and cert.start <= day <= cert.end


# --- a smaller case


def shrink(clients: Clients, case: Case, loss: Loss) -> Case:
    """Lines and names go as long as the same client still loses a leaf that some bundle would have kept."""
    while smaller := _first_that_loses(clients, list(_smaller(case)), loss.client):
        case = smaller
    return case


def _first_that_loses(clients: Clients, cases: Sequence[Case], client: str) -> Case | None:
    for at in range(0, len(cases), _AT_ONCE):
        for outcome in play(clients, cases[at : at + _AT_ONCE], tries=_CHUNK):
            if any(found.client == client for found in outcome.losses):
                return outcome.case
    return None


def _smaller(case: Case) -> Iterator[Case]:
    lines = case.lines
    for i in range(len(lines) - 1, 0, -1):
        words = lines[i].split()
        if words[0] in ("step", "secret", "published") or (words[0] == "cert" and not _is_used(case, words[1])):
            yield _without(lines, i)
    for i, line in enumerate(lines):
        words = line.split()
        first = {"secret": 2, "published": 1}.get(words[0])
        for at in range(first or len(words), len(words)):
            listed = words[at].split(",")
            fixed = 1 if words[0] == "secret" and at == 2 else 0  # the leaf
            for k in range(fixed, len(listed)):
                rest = ",".join(listed[:k] + listed[k + 1 :]) or "-"
                if listed != ["-"] and listed != ["="]:
                    yield _with(lines, i, " ".join([*words[:at], rest, *words[at + 1 :]]))


def _is_used(case: Case, name: str) -> bool:
    lines = (line for line in case.lines if not line.startswith("cert "))
    return any(name in word.split(",") for line in lines for word in line.split())


def _without(lines: tuple[str, ...], i: int) -> Case:
    return Case(lines[:i] + lines[i + 1 :])


def _with(lines: tuple[str, ...], i: int, line: str) -> Case:
    return Case((*lines[:i], line, *lines[i + 1 :]))


# --- what is told


def write_files(loss: Loss, outcome: Outcome, folder: Path) -> str:
    """The case and PEM files; the command that shows it, for a client of OpenSSL."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "case.txt").write_text(str(outcome.case))
    pems = outcome.played.pems
    parts = {"before": loss.bundle.before, "after": loss.bundle.after, "chain": tuple(loss.chain.split(","))}
    for part, members in parts.items():
        (folder / f"{part}.pem").write_text("".join(pems[name] for name in members))
    (folder / "leaf.pem").write_text(pems[parts["chain"][0]])
    seconds = FIRST_DAY_S + loss.bundle.day * DAY_S
    flags = {"openssl-partial": "-partial_chain ", "openssl-strict": "-partial_chain -x509_strict "}.get(loss.client, "")
    if loss.client == "envoy":
        return f"{folder}: before.pem, after.pem, chain.pem; Envoy's answer is the product's model of it (bundle_envoy.py asks a real one)"
    return (
        f"cd {folder} && for b in before after; do openssl verify -attime {seconds} -no-CApath -no-CAstore {flags}"
        "-untrusted chain.pem -CAfile $b.pem leaf.pem; done"
    )


def describe(outcome: Outcome, title: str, folder: Path) -> str:
    lines = [f"{title}:", *(f"  {loss}" for loss in outcome.failures)]
    lines += [f"  (no bundle would keep everybody) {loss}" for loss in outcome.impossible]
    lines += ["  " + line for line in str(outcome.case).splitlines()]
    if outcome.failures:
        lines.append("  " + write_files(outcome.failures[0], outcome, folder))
    return "\n".join(lines)


@dataclass
class Summary:
    cases: int = 0
    bundles: int = 0
    lookers: Counter[str] = field(default_factory=Counter)  # by client: how often it had a leaf to lose
    refused: int = 0  # cases
    undecided: int = 0  # cases where a proof ended before it was one
    failed: dict[int, Outcome] = field(default_factory=dict)
    impossible: dict[int, Outcome] = field(default_factory=dict)
    by: Counter[tuple[str, str]] = field(default_factory=Counter)  # cases by path and client

    @property
    def verified(self) -> int:
        return self.lookers.total()

    def add(self, seed: int, outcome: Outcome) -> None:
        self.cases += 1
        self.bundles += outcome.bundles
        self.lookers += outcome.verified
        self.refused += bool(outcome.refusals)
        self.undecided += bool(outcome.undecided)
        if outcome.impossible:
            self.impossible[seed] = outcome
        if not outcome.failures:
            return
        self.failed[seed] = outcome
        for client in {loss.client for loss in outcome.failures}:
            self.by[outcome.case.path, client] += 1

    def __str__(self) -> str:
        lines = [
            f"{self.cases} cases, {self.bundles} bundles, {self.verified} times a client had a leaf to lose; "
            f"{self.refused} cases with a refusal, {len(self.impossible)} where no bundle would have kept everybody",
            "of these: " + (" ".join(f"{seed} ({who})" for seed, who in self._hopeless()) or "none"),
            f"{len(self.failed)} cases lose somebody ({self.undecided} not proved to be avoidable): "
            + " ".join(map(str, list(self.failed)[:20])),
        ]
        for path in PATHS:
            found = [f"{client} {self.by[path, client]}" for client in CLIENTS if self.by[path, client]]
            if found:
                lines.append(f"  {path}: {', '.join(found)}")
        return "\n".join(lines)

    def _hopeless(self) -> Iterator[tuple[int, str]]:
        for seed, outcome in self.impossible.items():
            yield seed, ", ".join(sorted({loss.client for loss in outcome.impossible}))


def run(clients: Clients, seeds: Iterable[int], path: str | None = None) -> Summary:
    summary = Summary()
    left = iter(seeds)
    while batch := list(itertools.islice(left, _BATCH)):
        for seed, outcome in zip(batch, play(clients, [make(seed, path) for seed in batch]), strict=True):
            summary.add(seed, outcome)
    return summary


def main() -> int:
    parser = argparse.ArgumentParser(description="Bundles that cut somebody off, by random PKIs and rotations.")
    parser.add_argument("--seed", type=int, default=1, help="the first one (1)")
    parser.add_argument("--cases", type=int, default=1000, help="how many (1000)")
    parser.add_argument("--path", choices=PATHS, help="only that one")
    parser.add_argument("--file", type=Path, action="append", default=[], help="cases as text, and no random ones")
    parser.add_argument("--shrink", action="store_true", help="make those that are shown smaller")
    parser.add_argument("--show", type=int, default=3, help="so many failures (3)")
    parser.add_argument("--files", type=Path, default=Path(__file__).resolve().parents[2] / "build" / "bundle-game", help="a folder for their certificates")
    options = parser.parse_args()
    start = time.monotonic()
    with Clients() as clients:
        if options.file:
            cases = [Case.parse(file.read_text()) for file in options.file]
            outcomes = play(clients, cases)
            for file, outcome in zip(options.file, outcomes, strict=True):
                print(describe(outcome, file.name, options.files / file.stem))
            return 1 if any(outcome.failures for outcome in outcomes) else 0
        summary = run(clients, range(options.seed, options.seed + options.cases), options.path)
        print(f"{summary}\n{time.monotonic() - start:.1f} s", flush=True)
        for seed, outcome in itertools.islice(summary.failed.items(), options.show):
            if options.shrink and outcome.losses:
                outcome = play(clients, [shrink(clients, outcome.case, outcome.losses[0])])[0]
            print(describe(outcome, f"seed {seed}", options.files / str(seed)), flush=True)
    return 1 if summary.failed else 0


if __name__ == "__main__":
    sys.exit(main())
