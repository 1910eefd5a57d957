"""The load generator of hack/demo for programs that speak other protocols, too, and verify their clients.

    sidecar_load.py --target NAME=HOST:PORT/SERVERNAME/PROTOCOL --ca FILE --client FILE --out FILE
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import ssl
from dataclasses import dataclass
from pathlib import Path

from certroll_dev.demo import load
from sidecar_talk import PROTOCOLS, Protocol


@dataclass(frozen=True)
class Target(load.Target):
    protocol: Protocol

    @staticmethod
    def parse(text: str) -> Target:
        base, _, protocol = text.rpartition("/")
        if protocol not in PROTOCOLS:
            raise argparse.ArgumentTypeError(f"{text!r} ends with none of {', '.join(PROTOCOLS)}")
        found = load.Target.parse(base)
        return Target(found.name, found.host, found.port, found.server_name, PROTOCOLS[protocol])

    async def ask(self, context: ssl.SSLContext | None) -> tuple[str, str]:
        assert context
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            if self.protocol.prelude:
                writer.write(self.protocol.prelude)
                if await reader.readexactly(1) != self.protocol.granted:
                    return "", "TLS is not granted"
            await writer.start_tls(context, server_hostname=self.server_name)
            leaf = hashlib.sha256(writer.get_extra_info("ssl_object").getpeercert(binary_form=True)).hexdigest()
            writer.write(self.protocol.request)
            answer = await reader.readuntil(self.protocol.end)
            return leaf, "" if self.protocol.good in answer else f"it said {answer[:80]!r}"
        finally:
            writer.transport.abort()


class Client(load.Trust):
    """Its own certificate and key, in one file, are read again, too, when either file changes."""

    def __init__(self, bundle: Path, own: Path) -> None:
        super().__init__(bundle)
        self._own = own
        self._seen: tuple[float, float] = (0, 0)
        self._with_own = self._context

    def context(self) -> ssl.SSLContext:
        seen = (self._bundle.stat().st_mtime, self._own.stat().st_mtime)
        if seen != self._seen:
            self._with_own = ssl.create_default_context(cafile=str(self._bundle))
            self._with_own.load_cert_chain(self._own)
            self._seen = seen
        return self._with_own


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", action="append", type=Target.parse, required=True, metavar="NAME=HOST:PORT/SERVERNAME/PROTOCOL")
    parser.add_argument("--ca", type=Path, required=True, help="PEM file with the CAs that the clients trust")
    parser.add_argument("--client", type=Path, required=True, help="PEM file with the clients' certificate and key")
    parser.add_argument("--rate", type=float, required=True, help="calls a second for each target")
    parser.add_argument("--timeout", type=float, required=True, help="seconds until a call counts as failed")
    parser.add_argument("--out", type=Path, required=True, help="file for the JSON lines")
    arguments = parser.parse_args()
    with arguments.out.open("a", encoding="utf-8") as out:
        client = Client(arguments.ca, arguments.client)
        asyncio.run(load.run(arguments.target, client, arguments.rate, arguments.timeout, out))


if __name__ == "__main__":
    main()
