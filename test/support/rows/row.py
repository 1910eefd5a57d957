"""One line of the table: parameters in a role, what is swapped, and how one sees that the new one is in use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rows.beside import Beside
from rows.tap import Tap


def _nothing() -> None:
    pass


def _never() -> bool:
    return False


def after(first: Callable[[], object], then: Callable[[], bool]) -> Callable[[], bool]:
    """A look for which something has to be provoked."""

    def look() -> bool:
        first()
        return then()

    return look


@dataclass(frozen=True)
class Row:
    seed: int  # of the seed's Table 1, from 1
    component: str
    files: Mapping[str, Path]  # by the parameter, as the catalogue names it: those that are swapped together
    role: str
    swap: Callable[[], object] = _nothing
    seen: Callable[[], bool] = _never  # the new one is in use, as a client or a peer sees it
    via: str | None = None  # what names the file that says so: "--kubeconfig"
    note: str = ""  # for the table
    # That looking shows what is there: with the old one, before the swap, and after a time in which nothing was taken up.
    works: Callable[[], bool] = lambda: True
    # Between the program and what it calls. Of a leaf its connections are ended after the swap, so that there are
    # handshakes; of a CA it shows leaves of both.
    tap: Tap | None = None
    restart: Callable[[], object] | None = None
    triggers: Mapping[str, Callable[[], object]] = field(default_factory=dict)  # of the catalogue: SIGUSR1
    program: Beside | None = None  # that it is about, beside the cluster's own
    # Not a static pod's nor the kubelet's of a node, so that only the catalogue itself says something: with these settings.
    by_catalogue: Sequence[str] = ()
    # Seconds that a client which may take the new leaf may leave until it does.
    patience: float = 0.0
    # In words, why nobody outside can see it; `seen` then says that this is so.
    unobservable: str = ""

    @property
    def probes(self) -> bool:
        return self.tap is not None and self.role == "serverCA"

    def refresh(self) -> None:
        if self.tap:
            (self.tap.probe if self.probes else self.tap.drop)()

    def settle(self) -> None:
        if self.tap and self.probes:
            self.tap.settle()

    @property
    def parameters(self) -> str:
        return " ".join(self.files)

    @property
    def title(self) -> str:
        via = f" of {self.via}" if self.via else ""
        note = f" ({self.note})" if self.note else ""
        return f"{self.component} {self.parameters}{via} as {self.role}{note}"
