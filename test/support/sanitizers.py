"""How a program built with AddressSanitizer and UBSan, or with ThreadSanitizer, is started, and how its log is read."""

from __future__ import annotations

from pathlib import Path

ENVIRONMENT = {
    "ASAN_OPTIONS": "abort_on_error=0:exitcode=66:detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=67",
    "LSAN_OPTIONS": "exitcode=66",
    "TSAN_OPTIONS": "exitcode=66:second_deadlock_stack=1",
}


def report_in(log: Path) -> str | None:
    """The first line of a sanitizer's report."""
    return next(iter(reports(log.read_text(errors="replace"))), None)


def reports(log: str) -> list[str]:
    """The lines of a log that are a sanitizer's."""
    return [line for line in log.splitlines() if "Sanitizer" in line or "runtime error:" in line]
