"""Which steps a run has, and which of them wait for which."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from certroll_dev import paths

from . import selection
from .step import Step

SUITES = ("lint", "unit", "tsan", "fuzz", "integration", "e2e", "soak")
QUICK = ("lint", "unit")
GATE = ("lint", "unit", "tsan", "fuzz", "integration", "e2e")
BUILD = paths.REPOSITORY / "build"
AUDIT = BUILD / "audit-logs"
_PYTHON = BUILD / "venv" / "bin" / "python"
_SHARDS = {"integration": 2, "e2e": 2}  # each on a cluster of its own: most tests wait, and several wait at once
_DEPS = ("build", "cluster", "test")  # of the gate
_NEEDS = {"integration": ("build-dev", "build-release"), "e2e": ("build-dev", "build-release"), "soak": ("build-dev", "build-tsan", "build-release")}
# Unit tests mind a machine that is busy with clusters; the end-to-end tests take longest, and do not wait for the other ones.
_FOLLOWS = {"integration": ("unit", "tsan"), "e2e": ("unit",), "soak": ("unit", "tsan", "e2e-1", "e2e-2", "integration-1", "integration-2")}
_TESTS_RAN = frozenset({0, 1})  # pytest: 1 is that some failed
_CTEST_RAN = frozenset({0, 8})
_POLITE = ("nice", "-n", "10")
_LEFT_OVER = ("chrt", "--idle", "0")  # sched(7): only what no other process wants


@dataclass(frozen=True)
class Wanted:
    suites: Sequence[str]
    everything: bool = False  # also what only `hack/test all` runs
    minutes: float = 20.0  # of the soak
    modules: Sequence[str] | None = None  # of pytest's tests these only, as selection.modules() names them; None: all
    pytest: Sequence[str] = ()  # arguments of the user's for integration and e2e

    def has(self, *suites: str) -> bool:
        return any(suite in self.suites for suite in suites)

    @property
    def rights(self) -> bool:
        """Whether the rights of the manifests are judged, which takes all end-to-end tests."""
        return self.has("e2e") and not self.pytest and (self.modules is None or selection.RIGHTS in self.modules)

    def folder(self, name: str) -> Sequence[str]:
        """The paths of this folder to give to pytest; empty if it is not run."""
        if not self.has(name):
            return []
        if self.modules is None:
            return [f"test/{name}"]
        return [f"test/{module}" for module in self.modules if module.startswith(f"{name}/") and module != selection.RIGHTS]


def steps(wanted: Wanted) -> list[Step]:
    """In the order in which they are shown. What a run does not have, nothing waits for."""
    found = list(_all(wanted))
    names = {step.name for step in found}
    return [
        dataclasses.replace(step, needs=[n for n in step.needs if n in names], follows=[n for n in step.follows if n in names])
        for step in found
    ]


def _all(wanted: Wanted) -> Iterator[Step]:
    clusters = [name for name in selection.FOLDERS if wanted.folder(name)]
    yield Step("deps", ["hack/deps", *(["all"] if wanted.everything else _DEPS)])
    if clusters or wanted.has("lint"):
        yield Step("venv", ["sh", "-ec", _VENV], needs=["deps"])
    yield from _builds(wanted, clusters)
    if clusters and not wanted.pytest:
        # Kubernetes and the like, which takes minutes once: beside our own builds, and behind them. A run of a few tests
        # builds what these need.
        yield Step("programs", [*_POLITE, "hack/tools/ensure", *(["--all"] if wanted.everything else [])], needs=["deps"])
    if wanted.has("lint"):
        yield from _lint()
    if wanted.has("unit"):
        yield _ctest("unit", "dev")
    if wanted.has("fuzz"):
        yield from _fuzz(wanted.everything)
    if wanted.has("tsan"):
        yield _ctest("tsan", "tsan", [] if wanted.everything else ["--label-regex", "^threads$"], follows=["unit"])
    if wanted.everything and wanted.has("unit"):
        yield Step("proofs", [*_POLITE, "hack/prove"], needs=["deps"], is_test=True)
        yield Step("proofs-broken", [*_POLITE, "hack/prove", "--broken"], needs=["proofs"], is_test=True)
    yield from _clusters(wanted, clusters)


_VENV = """
[ -x build/venv/bin/python ] || python3 -m venv build/venv
exec build/venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement test/requirements.txt
"""


def _builds(wanted: Wanted, clusters: Sequence[str]) -> Iterator[Step]:
    """One after the other, as each uses all cores."""
    operator = ["certroll-operator"]
    if clusters or wanted.has("lint", "unit"):
        yield _build("dev", operator if clusters == ["soak"] and not wanted.has("lint", "unit") else [])
    if clusters:
        # The shutdown manager is linked statically in this build only, and only its operator has no more memory than it needs.
        soak = ["certroll-sidecar"] if "soak" in clusters else []
        yield _build("release", ["certroll-shutdown-manager", *operator, *soak], follows=["build-dev"])
    if wanted.has("tsan") or "soak" in clusters:
        tests = ["tests-with-threads"] if wanted.has("tsan") else []
        targets = [*tests, *(operator if "soak" in clusters else [])]
        yield _build("tsan", [] if wanted.everything and wanted.has("tsan") else targets, follows=["build-dev", "build-release"])


def _build(preset: str, targets: Sequence[str], follows: Sequence[str] = ()) -> Step:
    argv = ["hack/build", "--no-deps", "--preset", preset, *targets]
    return Step(f"build-{preset}", argv, needs=["deps"], follows=follows)


def _lint() -> Iterator[Step]:
    yield Step("lint-layers", ["hack/check-layers", "--headers"], needs=["deps"], is_test=True)
    format_all = "git ls-files -z 'pkg/*.[ch]' 'cmd/*.[ch]' 'test/*.[ch]' | xargs -0 clang-format --dry-run -Werror"
    yield Step("lint-format", ["bash", "-o", "pipefail", "-ec", format_all], needs=["deps"], is_test=True)
    yield Step("lint-sentences", ["hack/check-sentences"], is_test=True)
    yield Step("lint-words", ["hack/check-words"], is_test=True)
    yield Step("lint-docs", [_PYTHON, "hack/docs", "--check"], needs=["venv"], is_test=True)
    yield Step("lint-tidy", [*_POLITE, "hack/check-tidy"], needs=["build-dev"], is_test=True)


def _fuzz(everything: bool) -> Iterator[Step]:
    """Beside the clusters, in the time in which these wait: nothing waits for it. With everything ten seconds of each target."""
    before = ("build-dev", "build-release", "build-tsan", "unit", "tsan")
    build = ["hack/build", "--no-deps", "--preset", "fuzz", "fuzzers"]
    yield Step("build-fuzz", [*_POLITE, *build], needs=["deps"], follows=before)
    report = BUILD / "fuzz-junit.xml"
    how = [*_LEFT_OVER, "hack/fuzz", "--seconds", "10", "--jobs", "1"] if everything else [*_POLITE, "hack/fuzz", "--gate"]
    yield Step("fuzz", [*how, "--no-build", "--report", report], needs=["build-fuzz"], report=report, ran=_TESTS_RAN)


def _ctest(name: str, preset: str, which: Sequence[str] = (), follows: Sequence[str] = ()) -> Step:
    """Half of a unit test's time is waiting for timers of its own. ThreadSanitizer is too slow for CERTROLL_LONG."""
    report = BUILD / f"{preset}-ctest.xml"
    argv = [*(["env", "--unset=CERTROLL_LONG"] if name == "tsan" else []), "ctest", "--preset", preset, "--parallel", str(2 * (os.cpu_count() or 1)), "--output-junit", report, *which]
    return Step(name, argv, needs=[f"build-{preset}"], follows=follows, report=report, ran=_CTEST_RAN)


def _clusters(wanted: Wanted, folders: Sequence[str]) -> Iterator[Step]:
    """All that runs real servers, side by side: each waits for kubelets and timers more than it computes. The soak has the machine
    to itself."""
    if "soak" in folders:
        options = ["--minutes", f"{wanted.minutes:g}", "-s"]
        yield _pytest("soak", wanted.folder("soak"), options, needs=_NEEDS["soak"], follows=_FOLLOWS["soak"], before=_POLITE)
    for folder in ("e2e", "integration"):
        if folder in folders:
            yield from _folder(wanted, folder)


def _folder(wanted: Wanted, folder: str) -> Iterator[Step]:
    which = wanted.folder(folder)
    if wanted.pytest:
        yield _pytest(folder, which, ["--durations", "5", *wanted.pytest], needs=_NEEDS[folder], follows=_FOLLOWS[folder])
        return
    count = _SHARDS[folder] if wanted.modules is None else min(_SHARDS[folder], len(which))
    names = [f"{folder}-{number}" for number in range(1, count + 1)]
    for number, name in enumerate(names, 1):
        options = ["--durations", "5", "--shard", f"{number}/{count}", "--cluster-name", f"certroll-{name}"]
        options += [] if wanted.everything else ["--gate"]
        options += ["--keep-audit-logs", AUDIT] if folder == "e2e" else []
        yield _pytest(name, which, options, needs=_NEEDS[folder], follows=_FOLLOWS[folder])
    if folder == "e2e" and wanted.rights:
        yield _pytest("e2e-rights", [f"test/{selection.RIGHTS}"], ["--audit-logs", AUDIT], needs=["build-dev", *names])


def _pytest(
    name: str,
    which: Sequence[str],
    options: Sequence[str | os.PathLike[str]],
    needs: Sequence[str],
    follows: Sequence[str] = (),
    before: Sequence[str] = (),
) -> Step:
    report = BUILD / f"{name}-pytest.xml"
    argv = [*before, _PYTHON, "-u", "-m", "pytest", *which, "--junit-xml", report, "-ra", *options]
    return Step(name, argv, needs=["venv", "programs", *needs], follows=follows, report=report, ran=_TESTS_RAN)
