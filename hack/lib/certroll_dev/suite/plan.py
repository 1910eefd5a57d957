"""Which steps a run has, and which of them wait for which."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from certroll_dev import paths

from .step import Step

SUITES = ("lint", "unit", "tsan", "integration", "e2e", "soak")
BUILD = paths.REPOSITORY / "build"
_PYTHON = BUILD / "venv" / "bin" / "python"
AUDIT = BUILD / "audit-logs"
_SHARDS = 2  # of the end-to-end tests, each on a cluster of its own: most of them wait, and two wait at once
_E2E_NEEDS = ("build-dev", "build-release")
_TESTS_RAN = frozenset({0, 1})  # pytest: 1 is that some failed
_CTEST_RAN = frozenset({0, 8})
_POLITE = ("nice", "-n", "10")


@dataclass(frozen=True)
class Wanted:
    suites: Sequence[str]
    minutes: float  # of the soak
    pytest: Sequence[str] = ()  # arguments of the user's for integration and e2e

    def has(self, *suites: str) -> bool:
        return any(suite in self.suites for suite in suites)


def steps(wanted: Wanted) -> list[Step]:
    """In the order in which they are shown. What a run does not have, nothing waits for."""
    found = list(_all(wanted))
    names = {step.name for step in found}
    return [
        dataclasses.replace(step, needs=[n for n in step.needs if n in names], follows=[n for n in step.follows if n in names])
        for step in found
    ]


def _all(wanted: Wanted) -> Iterator[Step]:
    yield Step("deps", ["hack/deps", "all"])
    if wanted.has("lint", "integration", "e2e", "soak"):
        yield Step("venv", ["sh", "-ec", _VENV], needs=["deps"])
    yield from _builds(wanted)
    if wanted.has("integration", "e2e", "soak") and not wanted.pytest:
        # Kubernetes and the like, which takes minutes once: beside our own builds, and behind them. A run of a few tests
        # builds what these need.
        yield Step("programs", [*_POLITE, "hack/tools/ensure"], needs=["deps"])
    if wanted.has("lint"):
        yield from _lint()
    if wanted.has("unit"):
        yield _ctest("unit", "dev")
    if wanted.has("tsan"):
        yield _ctest("tsan", "tsan", follows=["unit"])
    yield from _clusters(wanted)


_VENV = """
[ -x build/venv/bin/python ] || python3 -m venv build/venv
exec build/venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement test/requirements.txt
"""


def _builds(wanted: Wanted) -> Iterator[Step]:
    """One after the other, as each uses all cores."""
    operator = ["certroll-operator"]
    if wanted.has("unit", "integration", "e2e", "soak"):
        yield _build("dev", [] if wanted.has("unit", "integration", "e2e") else operator)
    if wanted.has("tsan", "soak"):
        yield _build("tsan", [] if wanted.has("tsan") else operator, follows=["build-dev"])
    if wanted.has("e2e", "soak"):
        # The shutdown manager is linked statically in this build only.
        soak = [*operator, "certroll-reloader"] if wanted.has("soak") else []
        yield _build("release", ["certroll-shutdown-manager", *soak], follows=["build-dev", "build-tsan"])


def _build(preset: str, targets: Sequence[str], follows: Sequence[str] = ()) -> Step:
    argv = ["hack/build", "--no-deps", "--preset", preset, *targets]
    return Step(f"build-{preset}", argv, needs=["deps"], follows=follows)


def _lint() -> Iterator[Step]:
    yield Step("lint-layers", ["hack/check-layers", "--headers"], needs=["deps"], is_test=True)
    format_all = "git ls-files -z 'pkg/*.[ch]' 'cmd/*.[ch]' 'test/*.[ch]' | xargs -0 clang-format --dry-run -Werror"
    yield Step("lint-format", ["bash", "-o", "pipefail", "-ec", format_all], needs=["deps"], is_test=True)
    yield Step("lint-docs", [_PYTHON, "hack/docs", "--check"], needs=["venv"], is_test=True)


def _ctest(name: str, preset: str, follows: Sequence[str] = ()) -> Step:
    """Half of a unit test's time is waiting for timers of its own."""
    report = BUILD / f"{preset}-ctest.xml"
    argv = ["ctest", "--preset", preset, "--parallel", str(2 * (os.cpu_count() or 1)), "--output-junit", report]
    return Step(name, argv, needs=[f"build-{preset}"], follows=follows, report=report, ran=_CTEST_RAN)


def _clusters(wanted: Wanted) -> Iterator[Step]:
    """All that runs real servers, side by side: each waits for kubelets and timers more than it computes. The soak computes,
    and comes behind the first that ends."""
    if wanted.has("soak"):
        options = ["--minutes", f"{wanted.minutes:g}", "-s"]
        builds = ["build-dev", "build-tsan", "build-release"]
        yield _pytest("soak", "test/soak", options, needs=builds, follows=["e2e-1"], before=_POLITE)
    if wanted.has("e2e"):
        yield from _e2e(wanted)
    if wanted.has("integration"):
        yield _pytest("integration", "test/integration", ["--durations", "5", *wanted.pytest])


def _e2e(wanted: Wanted) -> Iterator[Step]:
    if wanted.pytest:
        yield _pytest("e2e", "test/e2e", ["--durations", "5", *wanted.pytest], needs=_E2E_NEEDS)
        return
    names = [f"e2e-{number}" for number in range(1, _SHARDS + 1)]
    for number, name in enumerate(names, 1):
        options = ["--shard", f"{number}/{_SHARDS}", "--cluster-name", f"certroll-{name}", "--keep-audit-logs", str(AUDIT)]
        yield _pytest(name, "test/e2e", ["--durations", "5", *options], needs=_E2E_NEEDS)
    yield _pytest("e2e-rights", "test/e2e/test_rights.py", ["--audit-logs", str(AUDIT)], needs=["build-dev", *names])


def _pytest(
    name: str,
    what: str,
    options: Sequence[str],
    needs: Sequence[str] = ("build-dev",),
    follows: Sequence[str] = (),
    before: Sequence[str] = (),
) -> Step:
    report = BUILD / f"{name}-pytest.xml"
    argv = [*before, _PYTHON, "-u", "-m", "pytest", what, "--junit-xml", report, "-ra", *options]
    return Step(
        name, argv, needs=["venv", "programs", *needs], follows=["unit", "tsan", *follows], report=report, ran=_TESTS_RAN
    )
