"""hack/test itself: what fails is counted, what cannot begin is named, and nothing passes for having run. Needs no cluster."""

from __future__ import annotations

import fnmatch
import functools
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from certroll_dev import files, paths, proofs
from certroll_dev.demo.waiting import wait_for
from certroll_dev.suite import cli, plan, selection, timeline
from certroll_dev.suite.schedule import Schedule
from certroll_dev.suite.step import Counts, Outcome, Step
from certroll_dev.ui import DevError

from shards import Shard

_REPORT = '<testsuites><testsuite tests="4" failures="1" errors="1" skipped="1"/></testsuites>'
_GOOD = '<testsuite tests="2" failures="0" errors="0" skipped="0"/>'
_EMPTY = '<testsuite tests="0" failures="0" errors="0" skipped="0"/>'
_NOT_RUN = '<testsuite tests="2" failures="0" disabled="0" skipped="1"/>'  # as ctest has it, which ends with 8
_PYTEST = frozenset({0, 1})


def _run(logs: Path, *steps: Step) -> dict[str, Outcome]:
    schedule = Schedule(steps, logs)
    schedule.run()
    return schedule.outcomes


def _shell(name: str, script: str, **options: object) -> Step:
    return Step(name, ["sh", "-c", script], **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("script", "counts", "trouble"),
    [
        (f"echo '{_REPORT}' >$0; exit 1", Counts(1, 2, 1), ""),
        (f"echo '{_GOOD}' >$0", Counts(2, 0, 0), ""),
        (f"echo '{_GOOD}' >$0; exit 2", Counts(0, 1, 0), "ended with 2"),
        (f"echo '{_GOOD}' >$0; kill -9 $$", Counts(0, 1, 0), "ended with -9"),
        ("exit 0", Counts(0, 1, 0), "no report"),
        ("echo '<testsuite' >$0", Counts(0, 1, 0), "no report"),
        (f"echo '{_EMPTY}' >$0", Counts(0, 1, 0), "has no test"),
        (f"echo '{_NOT_RUN}' >$0; exit 1", Counts(1, 1, 1), "ended with 1, and its report has no failure"),
    ],
)
def test_a_report_counts_when_its_tests_ran(logs: Path, tmp_path: Path, script: str, counts: Counts, trouble: str) -> None:
    report = tmp_path / "report.xml"
    report.write_text(_GOOD)  # of the run before, which says nothing about this one
    step = Step("tests", ["sh", "-c", script, report], report=report, ran=_PYTEST)
    outcome = _run(logs, step)["tests"]
    assert outcome.counts == counts
    assert trouble in outcome.trouble and bool(trouble) == bool(outcome.trouble)


def test_a_check_is_one_test(logs: Path) -> None:
    outcomes = _run(logs, _shell("good", "exit 0", is_test=True), _shell("bad", "exit 3", is_test=True))
    assert (outcomes["good"].counts, outcomes["bad"].counts) == (Counts(passed=1), Counts(failed=1))
    assert outcomes["bad"].stands


def test_what_cannot_begin_is_named_and_the_run_has_failed(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = _run(
        logs,
        _shell("good", "exit 0", is_test=True),
        _shell("build", "exit 1"),
        Step("unknown", ["/no/such/program"]),
        _shell("needs it", "exit 0", needs=["build"]),
        _shell("needs that", "exit 0", needs=["needs it"]),
        _shell("follows it", "exit 0", follows=["needs that", "unknown"], is_test=True),
    )
    assert {name for name, each in outcomes.items() if not each.stands} == {"build", "unknown", "needs it", "needs that"}
    assert outcomes["follows it"].counts == Counts(passed=1)
    assert cli.conclude(outcomes.values()) == 1
    *said, last = capsys.readouterr().out.splitlines()
    assert "needs it: NOT RUN: it needs build" in said and "needs that: NOT RUN: it needs needs it" in said
    assert last == "2 passed, 2 failed, 0 skipped"


def test_at_the_end_each_failed_test_is_named(logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.xml"
    cases = (
        '<testcase classname="e2e.test_mesh" name="test_calls"><failure message="AssertionError: 3 calls&#10;failed"/></testcase>'
        '<testcase classname="e2e.test_mesh" name="test_setup"><error message=""/></testcase><testcase classname="e2e.test_mesh" name="test_good"/>'
    )
    written = f'<testsuites><testsuite tests="3" failures="1" errors="1">{cases}</testsuite></testsuites>'
    step = Step("e2e", ["sh", "-c", "printf %s \"$1\" >\"$2\"; exit 1", "sh", written, report], report=report, ran=frozenset({0, 1}))
    assert cli.conclude(_run(logs, step).values()) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[-4:-2] == ["  e2e/test_mesh.py::test_calls: AssertionError: 3 calls failed", "  e2e/test_mesh.py::test_setup"]
    assert said[-1] == "1 passed, 2 failed, 0 skipped"


@pytest.mark.parametrize(
    ("scripts", "status"), [(["exit 0"], 0), (["exit 0", "exit 1"], 1), ([], 1)], ids=["all passed", "one failed", "nothing ran"]
)
def test_the_exit_status(logs: Path, scripts: Sequence[str], status: int) -> None:
    steps = [_shell(f"step-{number}", script, is_test=True) for number, script in enumerate(scripts)]
    assert cli.conclude(_run(logs, *steps, _shell("tool", "exit 0")).values()) == status


def test_steps_run_side_by_side(logs: Path, tmp_path: Path) -> None:
    """Each waits for the other, and a third for both."""
    meet = "touch $0/$1; while ! [ -e $0/$2 ]; do sleep 0.05; done"
    one = Step("one", ["timeout", "60", "sh", "-c", meet, tmp_path, "one", "two"], is_test=True)
    two = Step("two", ["timeout", "60", "sh", "-c", meet, tmp_path, "two", "one"], is_test=True)
    outcomes = _run(logs, one, two, _shell("after", "exit 0", needs=["one", "two"], is_test=True))
    assert all(outcome.counts == Counts(passed=1) for outcome in outcomes.values())
    assert outcomes["after"].began >= max(outcomes["one"].ended, outcomes["two"].ended)
    drawn = timeline.draw(list(outcomes.values()), outcomes["after"].ended, timeline.Busy())
    assert [line.split()[0] for line in drawn.splitlines()[1:]] == ["one", "two", "after", "in"]


_INTERRUPTED = """
import signal, sys
from pathlib import Path
from certroll_dev import ui
from certroll_dev.suite import cli
from certroll_dev.suite.schedule import Schedule
from certroll_dev.suite.step import Step
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also where these tests run by nohup
cli.can_be_ended()
folder = Path(sys.argv[1])
script = "import signal, sys, time\\ntry:\\n open(sys.argv[1] + '/up', 'w')\\n time.sleep(60)\\nfinally:\\n open(sys.argv[1] + '/down', 'w')"
steps = [Step("tests", [sys.executable, "-c", script, folder]), Step("after", ["touch", folder / "after"], follows=["tests"])]
ui.main(lambda _: Schedule(steps, folder).run() or 0)
"""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_it_ends_what_runs_in_order_and_begins_nothing(tmp_path: Path, number: signal.Signals) -> None:
    words = [sys.executable, "-c", _INTERRUPTED, tmp_path]
    process = subprocess.Popen(words, env={"PYTHONPATH": str(paths.HACK / "lib")}, process_group=0)
    try:
        wait_for("the step to run", (tmp_path / "up").exists, deadline=60)
        process.send_signal(number)
        assert process.wait(30) == 130
    finally:
        process.kill()
    assert (tmp_path / "down").exists() and not (tmp_path / "after").exists()


class _Torn:
    """A screen that takes nothing."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def write(self, text: str) -> int:
        raise self._error

    def flush(self) -> None:
        pass


@pytest.mark.parametrize("error", [BrokenPipeError("gone"), UnicodeEncodeError("ascii", "█", 0, 1, "no such letter")])
def test_nobody_has_to_read_what_it_says(logs: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    monkeypatch.setattr(sys, "stdout", _Torn(error))
    outcomes = _run(logs, _shell("bad", "echo said; exit 1", is_test=True), _shell("after", "echo said", follows=["bad"]))
    assert outcomes["bad"].counts == Counts(failed=1) and outcomes["after"].stands
    assert (logs / "after.log").read_text() == "said\n"


def test_what_ends_the_run_ends_its_steps(logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it is."""
    script = (
        "import pathlib, signal, sys, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # which a shell may have us ignore
        "folder = pathlib.Path(sys.argv[1])\n"
        "try:\n    (folder / 'up').touch()\n    time.sleep(60)\n"
        "finally:\n    (folder / 'down').touch()"
    )

    def fall(self: Schedule, outcome: Outcome) -> None:
        wait_for("the other step to run", (tmp_path / "up").exists, deadline=60)
        raise RuntimeError("of ours")

    monkeypatch.setattr(Schedule, "_take", fall)
    schedule = Schedule([Step("long", [sys.executable, "-c", script, tmp_path]), _shell("short", "exit 0")], logs)
    with pytest.raises(RuntimeError, match="of ours"):
        schedule.run()
    assert (tmp_path / "down").exists()


@pytest.mark.parametrize("everything", [False, True], ids=["gate", "all"])
def test_each_module_is_in_one_shard(everything: bool) -> None:
    modules = {path.stem for path in Path(__file__).parent.glob("test_*.py")} | {"test_of_tomorrow"}
    parts = [Shard(number, 3).modules(modules, everything) for number in (1, 2, 3)]
    assert sum(map(len, parts)) == len(modules) and set.union(*parts) == modules


@pytest.mark.parametrize("everything", [False, True], ids=["gate", "all"])
@pytest.mark.parametrize("folder", ["integration", "e2e"])
def test_each_module_is_in_one_step_of_a_run(folder: str, everything: bool) -> None:
    steps = _argvs(plan.Wanted(plan.SUITES if everything else plan.GATE, everything))
    parts = {name: argv for name, argv in steps.items() if f"test/{folder}" in argv}
    shards = [Shard.parse(argv[argv.index("--shard") + 1]) for argv in parts.values()]
    assert sorted(shard.number for shard in shards) == list(range(1, shards[0].count + 1))
    assert all(("--gate" in argv) != everything for argv in parts.values())
    assert "test/e2e/test_rights.py" in steps["e2e-rights"]
    assert ("soak" in steps) == everything


def test_only_all_proves_the_parsers() -> None:
    assert {"proofs", "proofs-broken"} <= _argvs(plan.Wanted(plan.SUITES, everything=True)).keys()
    assert "proofs" not in _argvs(plan.Wanted(plan.GATE))


def test_each_fault_of_a_proof_fits_its_parser(tmp_path: Path) -> None:
    known = proofs.load()
    assert known and all(proof.broken for proof in known)
    for proof in known:
        for fault in proof.broken:
            copies = list(proofs.with_fault(proof, fault, tmp_path))
            assert [copy.read_text() for copy in copies] != [(paths.REPOSITORY / source).read_text() for source in proof.sources]


def test_quick_needs_no_cluster() -> None:
    steps = _argvs(plan.Wanted(plan.QUICK))
    assert {"lint-layers", "lint-format", "lint-docs", "lint-tidy", "unit"} <= steps.keys()
    assert not any("pytest" in argv or "hack/tools/ensure" in argv for argv in steps.values())


def test_fuzzing_takes_nothing_from_what_minds_a_busy_machine() -> None:
    steps = {step.name: step for step in plan.steps(plan.Wanted(plan.GATE))}
    assert {"unit", "tsan"} <= set(steps["build-fuzz"].follows) and list(steps["fuzz"].needs) == ["build-fuzz"]
    assert all(steps[name].argv[0] == "nice" for name in ("build-fuzz", "fuzz"))
    assert not any({"build-fuzz", "fuzz"} & {*step.needs, *step.follows} for step in steps.values() if step.name != "fuzz")


def test_a_step_with_chosen_modules_has_these_only() -> None:
    modules = ["e2e/test_mesh.py", "integration/test_crd.py", "integration/test_client.py", "integration/test_probe.py"]
    steps = _argvs(plan.Wanted(plan.SUITES, True, modules=modules))
    assert {name for name, argv in steps.items() if "pytest" in argv} == {"e2e-1", "integration-1", "integration-2"}
    assert "test/e2e/test_mesh.py" in steps["e2e-1"]


def _argvs(wanted: plan.Wanted) -> dict[str, list[str]]:
    return {step.name: [str(word) for word in step.argv] for step in plan.steps(wanted)}


# --- what a run has ---

_AREAS = [
    selection.Area("mesh", ["pkg/*/domain_*", "test/e2e/mesh.py"], ["e2e/test_mesh.py", "integration/test_crd*.py"]),
    selection.Area("documentation", ["docs/*"], []),
]
_KNOWN = ["e2e/test_mesh.py", "e2e/test_other.py", "integration/test_crd.py", "integration/test_crd_more.py"]


@pytest.mark.parametrize(
    ("changed", "concerned"),
    [
        ([], []),
        (["docs/design.md"], []),
        (["docs/design.md", "pkg/trust/rules/domain_plan.c"], ["e2e/test_mesh.py", "integration/test_crd.py", "integration/test_crd_more.py"]),
        (["test/e2e/test_other.py"], ["e2e/test_other.py"]),
        (["test/e2e/mesh.py"], ["e2e/test_mesh.py", "integration/test_crd.py", "integration/test_crd_more.py"]),
        (["pkg/new/file.c"], _KNOWN),
        (["test/e2e/of_no_area.py"], _KNOWN),
    ],
)
def test_a_change_concerns_the_tests_of_its_areas_and_all_when_it_is_in_none(changed: list[str], concerned: list[str]) -> None:
    assert selection.concerned(selection.Selection(_AREAS, [], []), changed, _KNOWN) == concerned


def test_a_test_is_named_by_itself_its_module_or_its_case() -> None:
    names = ["e2e/test_a.py::test_b", "e2e/test_c.py", "e2e/test_d.py::test_e[1-x]"]
    chosen = selection.Selection([], [selection.OnlyAll(names, "", but=["e2e/test_c.py::test_g"])], [])
    out = ["e2e/test_a.py::test_b", "e2e/test_a.py::test_b[3]", "e2e/test_c.py::test_f", "e2e/test_d.py::test_e[1-x]"]
    kept = ["e2e/test_c.py::test_g", "e2e/test_a.py::test_bc", "e2e/test_d.py::test_e[1-xy]", "e2e/test_d.py::test_e", "integration/test_c.py::test_f"]
    assert not any(chosen.is_in_gate(test) for test in out)
    assert all(chosen.is_in_gate(test) for test in kept)


def test_the_selection_names_only_what_is_there() -> None:
    """A test that was renamed would come into the gate again, unnoticed."""
    chosen = selection.load()
    collected = _collected()
    names = [name for each in chosen.only_all for name in (*each.tests, *each.but)]
    gone = [name for name in names if not any(selection.is_of(test, name) for test in collected)]
    gone += [name for each in chosen.only_all for name in each.but if not any(selection.is_of(name, test) for test in each.tests)]
    gone += [each.test for each in chosen.slow if each.test not in collected or not chosen.is_in_gate(each.test)]
    gone += [pattern for area in chosen.areas for pattern in area.tests if not fnmatch.filter(selection.modules(), pattern)]
    assert not gone


def test_an_area_has_all_that_use_its_files() -> None:
    """Of files in Python, by their imports. What more modules use is in no area."""
    chosen = selection.load()
    known = selection.modules()
    missing = {}
    for module in known:
        for file in files.reached(paths.REPOSITORY / "test" / module, _imports):
            name = file.relative_to(paths.REPOSITORY).as_posix()
            if name.removeprefix("test/") not in known and module not in selection.concerned(chosen, [name], known):
                missing.setdefault(name, []).append(module)
    assert not missing


_IMPORT = re.compile(r"^\s*(?:from (\.*)([\w.]*) import ([\w, ()]+)|import ([\w.]+))", re.MULTILINE)


@functools.cache
def _imports(file: Path) -> frozenset[Path]:
    """The files of ours that it imports itself."""
    test = paths.REPOSITORY / "test"
    absolute = [paths.HACK / "lib", test / "support", file.parent, *([test / "integration"] if file.parent.name == "soak" else [])]
    found = set()
    for dots, package, members, alone in _IMPORT.findall(file.read_text()):
        roots = [[file, *file.parents][len(dots)]] if dots else absolute
        names = [package or alone, *(f"{package}.{member.split()[0]}".strip(".") for member in members.strip("()").split(",") if member.strip())]
        found |= {root / (name.replace(".", "/") + ".py") for name in names for root in roots if name}
    return frozenset(each for each in found if each.is_file())


def test_the_gate_is_what_the_selection_leaves() -> None:
    everything, gate = _collected(), _collected("--gate")
    chosen = selection.load()
    assert gate == {test for test in everything if chosen.is_in_gate(test)}
    assert gate < everything


@pytest.mark.parametrize(
    ("words", "suites", "everything"),
    [
        ("", plan.GATE, False),
        ("quick", plan.QUICK, False),
        ("unit tsan", ("unit", "tsan"), False),
        ("integration -- -k x", ("integration",), False),
        ("all", plan.SUITES, True),
        ("all --since HEAD integration", ("integration",), True),
        ("--minutes 5 all soak", ("soak",), True),
        ("soak tsan", ("soak", "tsan"), True),
    ],
)
def test_a_command_line(words: str, suites: Sequence[str], everything: bool) -> None:
    wanted = cli._parse(words.split())
    assert (tuple(wanted.suites), wanted.everything) == (suites, everything)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("uint", "there is no run or suite 'uint'"),
        ("quick e2e", "quick takes no suites"),
        ("--since HEAD", "--since goes with `all`"),
        ("unit -- -k x", "arguments for pytest go to the suites that are named"),
        ("-- -k x", "arguments for pytest go to the suites that are named"),
        ("all integration -- -k x", "arguments for pytest go to the suites that are named"),
    ],
)
def test_a_command_line_that_makes_no_sense(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli._parse(words.split())
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("revision", ["no-such-branch", "HEAD..HEAD", "--cached"])
def test_since_takes_a_commit(revision: str) -> None:
    with pytest.raises(DevError, match="--since takes a commit"):
        selection.changed_since(revision)


def test_rights_are_judged_when_they_are_concerned() -> None:
    known = selection.modules()
    modules = selection.concerned(selection.load(), ["manifests/base/role.yaml"], known)
    assert {module for module in known if module.startswith("e2e/")} <= set(modules)
    assert "e2e-rights" in _argvs(plan.Wanted(plan.SUITES, True, modules=modules))


_NONE = 5  # pytest: no tests were collected


@functools.cache
def _collected(*options: str) -> frozenset[str]:
    """By pytest itself."""
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--no-header", *options]
    found: set[str] = set()
    for folder in selection.FOLDERS:
        done = subprocess.run([*words, paths.REPOSITORY / "test" / folder], capture_output=True, text=True)
        assert done.returncode == 0 or (done.returncode == _NONE and folder == "soak"), done.stdout + done.stderr
        found.update(line for line in done.stdout.splitlines() if "::" in line)
    return frozenset(found)
