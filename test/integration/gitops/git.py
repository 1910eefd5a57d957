"""A Git server over HTTP, by git's own http-backend, and repositories that a test pushes to."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]
BRANCH = "main"
_ADDRESS = ("127.0.0.1", 19300)
# Nothing of this machine's settings.
_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "shop", "GIT_AUTHOR_EMAIL": "shop@example.com",
    "GIT_COMMITTER_NAME": "shop", "GIT_COMMITTER_EMAIL": "shop@example.com", "PATH": os.environ["PATH"],
}  # fmt: skip


@dataclass(frozen=True)
class Repository:
    """A bare one, and a work tree beside it."""

    name: str
    bare: Path
    tree: Path

    @property
    def url(self) -> str:
        host, port = _ADDRESS
        return f"http://{host}:{port}/{self.bare.name}"

    def commit(self, objects: Mapping[str, Object]) -> str:
        """Each object in a file of its own, and no other files; pushed. The revision."""
        for old in self.tree.glob("*.yaml"):
            old.unlink()
        for name, each in objects.items():
            (self.tree / f"{name}.yaml").write_text(yaml.safe_dump(each))
        _git(self.tree, "add", "--all")
        _git(self.tree, "commit", "--quiet", "--message", "change")
        _git(self.tree, "push", "--quiet", "origin", BRANCH)
        return _git(self.tree, "rev-parse", "HEAD")


class GitServer:
    """Of repositories in that folder. Use it as a context, within the network of those who ask."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "bare").mkdir(parents=True)

    def __enter__(self) -> GitServer:
        root = self._folder / "bare"
        self._server = ThreadingHTTPServer(_ADDRESS, type("Handler", (_Handler,), {"root": root}))
        self._thread = threading.Thread(target=self._server.serve_forever, name="git", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def repository(self, name: str) -> Repository:
        made = Repository(name, self._folder / "bare" / f"{name}.git", self._folder / name)
        _git(self._folder, "init", "--quiet", "--bare", "--initial-branch", BRANCH, str(made.bare))
        _git(self._folder, "init", "--quiet", "--initial-branch", BRANCH, str(made.tree))
        _git(made.tree, "remote", "add", "origin", str(made.bare))
        return made


class _Handler(BaseHTTPRequestHandler):
    """A request for git http-backend, which speaks CGI."""

    root: Path

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"])))

    def log_message(self, *_: Any) -> None:
        pass

    def _answer(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        environment = _ENVIRONMENT | {
            "GIT_PROJECT_ROOT": str(self.root), "GIT_HTTP_EXPORT_ALL": "1", "REQUEST_METHOD": self.command, "PATH_INFO": path, "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""), "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }  # fmt: skip
        done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        self.send_response(int(fields.pop("Status", "200 OK" if fields else "500").split()[0]))
        for name, value in (fields | {"Content-Length": str(len(content))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


def _git(folder: Path, *words: str) -> str:
    assert shutil.which("git"), "git is not installed: run hack/deps test"
    done = subprocess.run(["git", *words], cwd=folder, env=_ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"git {' '.join(words)}: {done.stderr}"
    return done.stdout.strip()
