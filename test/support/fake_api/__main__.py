"""python -m fake_api: record an API server, or replay a tape."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import tempfile
import threading
from pathlib import Path

from .fake import FakeApi
from .tape import Tape


def main() -> int:
    parser = argparse.ArgumentParser(prog="fake_api", description="Records what passes to an API server, or replays it.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    record = verbs.add_parser("record", help="stand before the API server of a kubeconfig; the tape is written at the end")
    record.add_argument("--kubeconfig", type=Path, required=True)
    replay = verbs.add_parser("replay", help="answer from a tape")
    for verb in (record, replay):
        verb.add_argument("--tape", type=Path, required=True, help="holds Secrets: keep it to yourself")
        verb.add_argument("--port", type=int, default=0)
        verb.add_argument("--out", type=Path, default=Path("fake.kubeconfig"), help="kubeconfig that leads here (default: %(default)s)")
    arguments = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with tempfile.TemporaryDirectory() as folder, _fake(arguments, Path(folder)) as fake:
        print(f"{fake.address}; kubeconfig: {fake.kubeconfig(arguments.out)}", flush=True)
        ended.wait()
    if arguments.verb == "record":
        fake.tape.save(arguments.tape)
    for error in fake.errors:
        print(error)
    return 1 if fake.errors else 0


def _fake(arguments: argparse.Namespace, folder: Path) -> FakeApi:
    if arguments.verb == "replay":
        return FakeApi(folder, tape=Tape.load(arguments.tape), port=arguments.port)
    words = ["kubectl", "--kubeconfig", arguments.kubeconfig, "config", "view", "--raw", "--minify", "-o", "json"]
    config = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return FakeApi(folder, config, port=arguments.port)


if __name__ == "__main__":
    raise SystemExit(main())
