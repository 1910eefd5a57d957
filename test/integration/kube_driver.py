"""The driver over pkg/kube and pkg/runtime (drivers/kube_driver.c) as an object."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from control_plane import ROOT, ControlPlane

Line = dict[str, Any]
_BUILD = Path(os.environ.get("CERTROLL_BUILD", ROOT / "build" / "dev"))
PROGRAM = _BUILD / "test" / "kube_driver"


class Driver:
    """Runs commands of the driver in the network of the control plane."""

    def __init__(self, plane: ControlPlane, kubeconfig: Path | None = None) -> None:
        self.plane = plane
        self._words = [PROGRAM, "--kubeconfig", kubeconfig or plane.kubeconfig]

    def __call__(self, *words: str | Path, input: Any = None) -> Any:
        """The result of one command: what the API server answered, or {"error": …}."""
        text = None if input is None else json.dumps(input)
        done = self.plane.run(*self._words, *words, input=text, check=False)
        assert done.returncode in (0, 1), f"exit {done.returncode}: {done.stdout}{done.stderr}"
        line = json.loads(done.stdout) if done.stdout else None
        assert (done.returncode == 1) == (isinstance(line, dict) and "error" in line), done.stdout
        return line

    def error(self, *words: str | Path, input: Any = None) -> Line:
        """The error that the command must end with."""
        line = self(*words, input=input)
        assert isinstance(line, dict) and "error" in line, f"no error, but {line}"
        return line["error"]

    @contextmanager
    def running(self, *words: str | Path, log: Path) -> Iterator[Running]:
        """A command that goes on (watch, manage). SIGTERM ends it and must leave nothing for the sanitizers to say."""
        with log.open("w") as stderr:
            process = self.plane.popen(
                [*self._words, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, text=True
            )
            running = Running(process)
            try:
                yield running
                running.terminate()
                assert process.returncode == 0, f"exit {process.returncode}:\n{log.read_text()[-4000:]}"
            finally:
                process.kill()
                process.wait()


class Running:
    """A driver that prints a line for each callback."""

    def __init__(self, process: subprocess.Popen) -> None:
        self.process = process
        self.lines: list[Line] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for text in self.process.stdout:
            with self._changed:
                self.lines.append(json.loads(text))
                self._changed.notify_all()

    def wait_for(self, what: str, wanted: Callable[[Line], bool], after: int = 0, timeout: float = 30) -> int:
        """The place of the first line from `after` on that is wanted."""
        end = time.monotonic() + timeout
        with self._changed:
            while True:
                for place in range(after, len(self.lines)):
                    if wanted(self.lines[place]):
                        return place
                left = end - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    raise AssertionError(f"no {what} within {timeout:g} s among {self.lines[after:]}")

    def callback(self, name: str, after: int = 0, timeout: float = 30, **fields: Any) -> int:
        """The place of the first such callback."""
        wanted = {"callback": name, **fields}
        return self.wait_for(str(wanted), lambda line: wanted.items() <= line.items(), after, timeout)

    def keys(self, name: str, after: int = 0) -> list[str]:
        return [line["key"] for line in self.lines[after:] if line.get("callback") == name]

    def terminate(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=30)
        self._reader.join(timeout=10)
