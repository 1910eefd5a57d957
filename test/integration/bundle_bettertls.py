"""The chains of BetterTLS (github.com/Netflix/bettertls), as what a policy's bundle has and its pods serve.

Its program makes them anew, with keys of the moment, below one root: ways with branches and dead ends ("pathbuilding"),
and names within and beyond what a CA may sign ("nameconstraints"). Each becomes a case of the game (bundle_game.py), in
which who owns the Secrets has another root in place of that one.

    python bundle_bettertls.py nameconstraints --every 1     all of them: a quarter of an hour
"""

from __future__ import annotations

import argparse
import base64
import itertools
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import bundle_game as game
from bundle_cases import DAY_S, FIRST_DAY_S, Case
from bundle_clients import CLIENTS, READERS, Clients, Played, Question
from certroll_dev import tools

SUITES = ("pathbuilding", "nameconstraints")
_BATCH = 200
# No real client of the game: the product's model of it answers (bundle_clients.py).
_REAL = tuple(client for client in CLIENTS if client != "envoy")


@dataclass(frozen=True)
class Chain:
    """certificates: the leaf first, then what a server sends with it; DER. constrains: it is about names that a CA may sign."""

    name: str
    certificates: tuple[bytes, ...]
    constrains: bool


@dataclass(frozen=True)
class Suite:
    root: bytes
    chains: tuple[Chain, ...]


def export(suite: str, folder: Path) -> Suite:
    program = tools.ensure(["bettertls"])["bettertls"]
    out = folder / f"{suite}.json"
    subprocess.run([program, "export-tests", "--suite", suite, "--out", out], check=True, capture_output=True)
    text = json.loads(out.read_text())
    out.unlink()
    cases = text["suites"][suite]["testCases"]
    chains = (
        Chain(
            f"{suite} {case['id']}",
            tuple(map(base64.b64decode, case["certificates"])),
            constrains=suite == "nameconstraints",
        )
        for case in cases
    )
    return Suite(base64.b64decode(text["trustRoot"]), tuple(chains))


def tomorrow() -> int:
    """A day of the game. Certificates of the moment began a day ago, and those that are expired ended an hour ago."""
    return int((time.time() - FIRST_DAY_S) // DAY_S) + 1


def cases_of(suite: Suite, chain: Chain, day: int) -> Iterator[Case]:
    """The root is replaced: where it is all that is trusted; and where what stands between is trusted, too, in some order."""
    names = [f"c{i}" for i in range(len(chain.certificates))]
    certs = [_loaded(name, der) for name, der in zip(names, chain.certificates, strict=True)]
    fixed = ["begin policy 0", _loaded("R", suite.root), *certs, f"cert N N 1 N 1 {day - 5} {day + 1000} ca 1 0"]
    between = names[1:]
    random.Random(chain.name).shuffle(between)
    sent = ",".join(names)
    for published, served in (("R", sent), (",".join(["R", *between]), names[0]), (",".join([*between, "R"]), sent)):
        yield Case((*fixed, f"published {published}", f"secret s0 {served} N", f"step {day} -"))


def _loaded(name: str, der: bytes) -> str:
    return f"cert {name} {base64.b64encode(der).decode()}"


@dataclass
class Seen:
    cases: int = 0
    verified: Counter[str] = field(default_factory=Counter)  # by client: how often it had a leaf to lose
    refused: int = 0  # cases
    lost: list[str] = field(default_factory=list)
    otherwise: list[str] = field(default_factory=list)  # answers that the model of a client does not give
    unread: int = 0  # of Go, which refuses constraints on names that it cannot parse: the model knows URIs only

    def __str__(self) -> str:
        verified = ", ".join(f"{client} {self.verified[client]}" for client in CLIENTS)
        return (
            f"{self.cases} cases, {self.refused} with a refusal; verified before: {verified}; "
            f"lost: {len(self.lost)}; other than the model: {len(self.otherwise)}, and of names that Go cannot parse: {self.unread}"
        )


def play(clients: Clients, suite: Suite, chains: Sequence[Chain], day: int) -> Seen:
    seen = Seen()
    cases = ((chain, case) for chain in chains for case in cases_of(suite, chain, day))
    while batch := list(itertools.islice(cases, _BATCH)):
        played = clients.play([case for _, case in batch])
        clients.ask((each, _questions(each)) for each in played)
        for (chain, case), each in zip(batch, played, strict=True):
            _look(seen, chain, case, each)
    return seen


def _questions(played: Played) -> Iterable[Question]:
    for bundle in played.bundles:
        for client, chain, roots in itertools.product(CLIENTS, bundle.leaves, (bundle.before, bundle.after)):
            question = Question(client, bundle.day, roots, chain)
            yield question
            if client in _REAL:
                yield game.of_the_model(question)
            if client in READERS:
                yield _read(question)


def _read(question: Question) -> Question:
    return replace(question, client=READERS[question.client])


def _is_modelled(played: Played, question: Question) -> bool:
    """The models do not know what their clients cannot read: nobody has that to lose."""
    return question.client in _REAL and (question.client not in READERS or played.answers[_read(question)])


def _look(seen: Seen, chain: Chain, case: Case, played: Played) -> None:
    seen.cases += 1
    seen.refused += bool(played.refusals)
    for question, answer in played.answers.items():
        if not _is_modelled(played, question) or played.answers[game.of_the_model(question)] == answer:
            continue
        if question.client == "go" and not answer and chain.constrains:
            seen.unread += 1
        else:
            seen.otherwise.append(f"{chain.name}: {question.client} says {answer} of {question.chain} with {question.roots}")
    for bundle in played.bundles:
        for client, leaf in itertools.product(CLIENTS, bundle.leaves):
            before, after = (played.answers[Question(client, bundle.day, roots, leaf)] for roots in (bundle.before, bundle.after))
            seen.verified[client] += before
            if before and not after:
                seen.lost.append(f"{chain.name}: {client} lost {leaf}: {bundle.before} → {bundle.after}\n{case}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Bundles that cut off who verified a chain of BetterTLS.")
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--every", type=int, default=10, metavar="N", help="each Nth chain (10)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Clients() as clients:
        suite = export(options.suite, Path(folder))
        seen = play(clients, suite, suite.chains[:: options.every], tomorrow())
    print("\n".join([str(seen), *seen.lost[:5], *seen.otherwise[:20]]))
    return 1 if seen.lost or seen.otherwise else 0


if __name__ == "__main__":
    sys.exit(main())
