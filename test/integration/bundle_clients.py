"""The product and the clients of the game of bundles, as processes that are asked line by line."""

from __future__ import annotations

import base64
import functools
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bundle_cases import Case

_ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_ROOT / "hack" / "lib")]

from certroll_dev import tools  # noqa: E402

_BUILD = Path(os.environ.get("CERTROLL_BUILD", _ROOT / "build" / "dev"))

# curl trusts each certificate of its bundle (X509_V_FLAG_PARTIAL_CHAIN); Python 3.13 does, and is strict.
OPENSSL = ("openssl", "openssl-partial", "openssl-strict")
CLIENTS = (*OPENSSL, "envoy", "go", "gnutls")  # Envoy: the product's model of it, which test_bundle_envoy.py compares with a real one

READERS = {client: f"{client}-reads" for client in ("go", "gnutls")}  # clients that verify what these can read


@dataclass(frozen=True)
class Bundle:
    """What was published at a place, and the chains that the product knew then."""

    step: int
    day: int
    place: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    leaves: tuple[str, ...]  # but for those that nobody ever serves
    expected: tuple[str, ...] = ()  # these: a domain serves such a leaf once it can be verified
    wanted: tuple[str, ...] = ()  # CAs that a domain's plan has in it


@dataclass(frozen=True)
class Question:
    client: str
    day: int
    roots: tuple[str, ...]
    chain: str

    @property
    def line(self) -> str:
        return f"verify {self.client} {self.day} {','.join(self.roots) or '-'} {self.chain}\n"


@dataclass(frozen=True)
class Played:
    """What became of a case."""

    certs: str  # "cert NAME BASE64", a line for each
    bundles: tuple[Bundle, ...]
    refusals: tuple[str, ...]
    answers: dict[Question, bool] = field(default_factory=dict)

    @functools.cached_property
    def pems(self) -> dict[str, str]:
        found = {}
        for line in self.certs.splitlines():
            _, name, text = line.split()
            body = "\n".join(textwrap.wrap(text, 64))
            found[name] = f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n"
        return found


class _Process:
    def __init__(self, *words: str | Path) -> None:
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def tell(self, text: str) -> threading.Thread:
        """By a thread: it would wait for the answers to be read, as they wait for the text."""
        thread = threading.Thread(target=self._write, args=(text + "flush\n",), daemon=True)
        thread.start()
        return thread

    def _write(self, text: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(text)
        self._process.stdin.flush()

    def line(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, f"{self._process.args!r} has ended with {self._process.wait()}"
        return line.rstrip("\n")

    def close(self) -> int:
        """Its status: a sanitizer's, too."""
        self._process.communicate(timeout=60)
        return self._process.returncode


class Clients:
    """Many cases at a time: what one process thinks about, the others do meanwhile, and nobody waits for one answer."""

    def __init__(self, build: Path = _BUILD) -> None:
        """`build`: the folder of a build with tests."""
        certcheck = tools.ensure(["certcheck"])["certcheck"]
        self._driver = _Process(build / "test" / "bundle_driver")
        own = {"go": _Process(certcheck, "clients"), "gnutls": _Process(build / "test" / "gnutls_clients")}
        self._others = own | {reader: own[client] for client, reader in READERS.items()}

    def __enter__(self) -> Clients:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        ended = [process.close() for process in {self._driver, *self._others.values()}]
        assert kind or not any(ended), f"the processes have ended with {ended}"

    def key(self, number: int) -> str:
        """A private key of the game's certificates, PEM."""
        thread = self._driver.tell(f"key {number}\n")
        text = base64.b64decode(self._driver.line()).decode()
        thread.join()
        return text

    def play(self, cases: Sequence[Case]) -> list[Played]:
        thread = self._driver.tell("".join(f"reset\n{case}" for case in cases))
        played = [self._read(case) for case in cases]
        thread.join()
        return played

    def _read(self, case: Case) -> Played:
        certs = "".join((self._driver.line() if is_made(line) else line) + "\n" for line in case.lines if line.startswith("cert "))
        bundles: list[Bundle] = []
        refusals: list[str] = []
        served: set[str] = set()
        for step, day in enumerate(case.days()):
            while (line := self._driver.line()) != ".":
                kind, rest = line.split(" ", 1)
                if kind == "refused":
                    refusals.append(rest)
                elif kind == "served":
                    served.add(rest)
                else:
                    place, before, after, chains, wanted = rest.split()
                    leaves = tuple(sorted(set(split(chains, ";"))))
                    bundles.append(Bundle(step, day, place, split(before), split(after), leaves, (), split(wanted)))
        if case.is_of_a_domain:  # whose sources nobody serves: a leaf that never comes to a Secret cannot be lost
            bundles = [_of_served(bundle, served) for bundle in bundles]
        return Played(certs, tuple(bundles), tuple(refusals))

    def ask(self, asked: Iterable[tuple[Played, Iterable[Question]]]) -> None:
        """The answers are in `Played.answers` then. Each is asked once."""
        texts: dict[_Process, list[str]] = {}
        waiting: dict[_Process, list[tuple[Played, Question]]] = {}
        for played, questions in asked:
            fresh: dict[_Process, list[Question]] = {}
            for question in dict.fromkeys(questions):
                if question not in played.answers:
                    fresh.setdefault(self._others.get(question.client, self._driver), []).append(question)
            for process, own in fresh.items():
                texts.setdefault(process, []).append("reset\n" + played.certs + "".join(one.line for one in own))
                waiting.setdefault(process, []).extend((played, question) for question in own)
        threads = [process.tell("".join(text)) for process, text in texts.items()]
        for process, expected in waiting.items():
            for played, question in expected:
                played.answers[question] = process.line() == "1"
        for thread in threads:
            thread.join()


def _of_served(bundle: Bundle, served: Collection[str]) -> Bundle:
    known = bundle.leaves
    leaves, expected = (tuple(chain for chain in known if (chain in served) is wanted) for wanted in (True, False))
    return replace(bundle, leaves=leaves, expected=expected)


def is_made(line: str) -> bool:
    """By the driver, which tells what it has made. Else it is loaded as it is: "cert NAME BASE64"."""
    return len(line.split()) > 3


def split(text: str, separator: str = ",") -> tuple[str, ...]:
    return () if text == "-" else tuple(text.split(separator))
