#!/usr/bin/env python3
"""Calls that never stop: an open loop of HTTPS requests, each over a TLS handshake of its own; or of plain ones.

Open loop means that a slow or failed call does not hold back the next one, as real clients do not wait for each other;
a closed loop would hide an outage by calling less during it. One JSON line is written per call.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import itertools
import json
import os
import signal
import ssl
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO


@dataclass(frozen=True)
class Target:
    """Something to call: NAME=HOST:PORT/SERVERNAME (an IPv6 address in brackets), where SERVERNAME is what its certificate must be good for."""

    name: str
    host: str
    port: int
    server_name: str

    @staticmethod
    def parse(text: str) -> Target:
        try:
            name, rest = text.split("=", 1)
            address, server_name = rest.split("/", 1)
            host, port = address.rsplit(":", 1)
            return Target(name, host.removeprefix("[").removesuffix("]"), int(port), server_name)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text!r} is not NAME=HOST:PORT/SERVERNAME") from error

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}={host}:{self.port}/{self.server_name}"

    async def ask(self, context: ssl.SSLContext | None) -> tuple[str, str]:
        """The leaf that was served, if any, and what is wrong with the answer, if anything."""
        reader, writer = await asyncio.open_connection(
            self.host, self.port, ssl=context, server_hostname=self.server_name if context else None
        )
        try:
            tls = writer.get_extra_info("ssl_object")
            leaf = hashlib.sha256(tls.getpeercert(binary_form=True)).hexdigest() if tls else ""
            writer.write(f"GET / HTTP/1.1\r\nHost: {self.server_name}\r\nConnection: close\r\n\r\n".encode())
            status = int((await reader.readuntil(b"\r\n")).split()[1])
            if status == 200:
                return leaf, ""
            return leaf, f"HTTP {status}" if tls else f"HTTP {status}: {await _said(reader)}"
        finally:
            # No polite closing: the answer is here, and waiting for the peer's close_notify would only cost time.
            writer.transport.abort()


class Plain:
    """No TLS of the caller's own: what is on trial lies behind the target."""

    def context(self) -> ssl.SSLContext | None:
        return None


class Trust(Plain):
    """The client's CA bundle, read again when the file changes: the client's own trust is not what is on trial."""

    def __init__(self, bundle: Path) -> None:
        self._bundle = bundle
        self._stamp = (0, 0)
        self._context = ssl.create_default_context(cafile=str(bundle))

    def context(self) -> ssl.SSLContext | None:
        stat = self._bundle.stat()
        stamp = (stat.st_mtime_ns, stat.st_ino)
        if stamp != self._stamp:
            self._stamp = stamp
            self._context = ssl.create_default_context(cafile=str(self._bundle))
        return self._context


async def call(target: Target, number: int, context: ssl.SSLContext | None, timeout: float) -> dict[str, object]:
    """One call, as the record to be written. Numbers count from 0 for each target: one that is missing is under way."""
    started, clock = time.time(), time.monotonic()
    record: dict[str, object] = {"t": round(started, 4), "target": target.name, "n": number}
    try:
        async with asyncio.timeout(timeout):
            leaf, wrong = await target.ask(context)
        record |= {"ok": not wrong, "leaf": leaf}
        if wrong:
            record["reason"] = wrong
    except TimeoutError:
        record |= {"ok": False, "reason": f"no answer within {timeout:g} s"}
    except (OSError, ssl.SSLError, asyncio.IncompleteReadError, ValueError) as error:
        record |= {"ok": False, "reason": _reason(error)}
    record["ms"] = round((time.monotonic() - clock) * 1000, 1)
    return record


async def _said(reader: asyncio.StreamReader) -> str:
    """An Envoy that has no answer says why in the body."""
    _, _, body = (await reader.read(4096)).partition(b"\r\n\r\n")
    return body.decode(errors="replace").strip()


def _reason(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate refused by the caller: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or error}"
    if isinstance(error, asyncio.IncompleteReadError):
        return "connection closed before an answer"
    if isinstance(error, OSError):
        return os.strerror(error.errno) if error.errno else type(error).__name__
    return f"not HTTP: {error}"


async def run(targets: Sequence[Target], trust: Plain, rate: float, timeout: float, out: TextIO) -> None:
    """Call every target `rate` times a second until SIGTERM or SIGINT; then wait for the calls under way."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    under_way: set[asyncio.Task[None]] = set()
    loops = [_tick(target, index / len(targets), trust, rate, timeout, out, stop, under_way) for index, target in enumerate(targets)]
    await asyncio.gather(*loops)
    if under_way:
        await asyncio.wait(under_way)


async def _tick(
    target: Target, phase: float, trust: Plain, rate: float, timeout: float, out: TextIO, stop: asyncio.Event,
    under_way: set[asyncio.Task[None]],
) -> None:
    """Start calls at fixed times; `phase` (0 to 1) keeps several targets from being called in the same instant."""
    interval = 1.0 / rate
    due = time.monotonic() + phase * interval
    for number in itertools.count():
        try:
            await asyncio.wait_for(stop.wait(), max(0.0, due - time.monotonic()))
            return
        except TimeoutError:
            pass
        task = asyncio.create_task(_record(target, number, trust, timeout, out))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
        due += interval


async def _record(target: Target, number: int, trust: Plain, timeout: float, out: TextIO) -> None:
    record = await call(target, number, trust.context(), timeout)
    out.write(json.dumps(record) + "\n")
    out.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", action="append", type=Target.parse, required=True, metavar="NAME=HOST:PORT/SERVERNAME")
    parser.add_argument("--ca", type=Path, help="PEM file with the CAs that the caller trusts (default: plain HTTP)")
    parser.add_argument("--rate", type=float, default=20.0, help="calls a second for each target (default: %(default)s)")
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds until a call counts as failed (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="file for the JSON lines (default: stdout)")
    arguments = parser.parse_args()
    with open(arguments.out, "a", encoding="utf-8") if arguments.out else os.fdopen(sys.stdout.fileno(), "w", closefd=False) as out:
        trust = Trust(arguments.ca) if arguments.ca else Plain()
        asyncio.run(run(arguments.target, trust, arguments.rate, arguments.timeout, out))


if __name__ == "__main__":
    main()
