"""What the pages in pkg/ name exists: each path and each `cr_...` in backticks, and each function in the file behind it.

A page that sends its reader to a file that was renamed is worse than none.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path

# Code that the page has as a block is a command or a picture, not a name.
_BLOCK = re.compile(r"^(?:```.*?^```|    .*?$)", re.DOTALL | re.MULTILINE)
_WORD = re.compile(r"`([^`\n]+)`")
_FUNCTION = re.compile(r"cr_\w+")
_PATH = re.compile(r"(?:[\w.*-]+/)*[\w*-][\w.*-]*\.(?:c|h|py|md|yaml|toml|json|txt|in)|(?:[\w.*-]+/)+[\w.*-]*")
# "`cr_plan_make` (`rules/plan.c`": the function, and where it is defined.
_DEFINED = re.compile(r"`(cr_\w+)`\s\(`([\w/]+\.c)`")
# Where a name may begin: beside the page, or in one of these. The last ones are for tests.
_TOPS = (".", "pkg", "test", "test/unit", "test/fuzz")


def problems(root: Path) -> Iterator[str]:
    """Each in one line, with the page."""
    for folder in sorted({file.parent for file in root.glob("pkg/**/*.c")}):
        if not any((each / "README.md").exists() for each in (folder, folder.parent) if each != root / "pkg"):
            yield f"{folder.relative_to(root)} has no README.md, and neither has the folder of its feature"
    for page in sorted(root.glob("pkg/**/README.md")):
        text = _BLOCK.sub("", page.read_text())
        where = page.relative_to(root)
        for word in _WORD.findall(text):
            if _FUNCTION.fullmatch(word) and word not in _identifiers(root):
                yield f"{where}: there is no {word} in pkg/ or cmd/"
            elif _PATH.fullmatch(word) and not _is_there(root, page.parent, word):
                yield f"{where}: there is no {word}"
        for function, name in _DEFINED.findall(text):
            for file in _found(root, page.parent, name):
                if not re.search(rf"^\w[^;]*\b{function}\([^;]*?\)\n{{", file.read_text(), re.MULTILINE):
                    yield f"{where}: {name} does not define {function}"


def _is_there(root: Path, folder: Path, name: str) -> bool:
    return any(True for _ in _found(root, folder, name))


def _found(root: Path, folder: Path, name: str) -> Iterator[Path]:
    """Below a page's folder at any depth: a feature's page names files of its folders."""
    yield from folder.glob(f"**/{name}" if "/" not in name else name)
    for top in _TOPS:
        yield from (root / top).glob(name)


@functools.cache
def _identifiers(root: Path) -> frozenset[str]:
    files = [file for top in ("pkg", "cmd") for file in (root / top).glob("**/*.[ch]")]
    return frozenset(word for file in files for word in _FUNCTION.findall(file.read_text()))
