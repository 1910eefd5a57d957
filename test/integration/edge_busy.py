"""Clients that keep their connection and ask all the time: those that a graceful end cuts most easily, since each moment of it may be
one at which a request is on its way."""

from __future__ import annotations

import threading
import time

from edge_clients import PATIENCE_S, Address, Cut, Http1


class Busy:
    def __init__(self, address: Address, clients: int) -> None:
        self.cut: list[str] = []  # who got no answer
        self.told = 0  # who was told with an answer that it is the last
        self.served = 0
        self._address = address
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._ask, daemon=True) for _ in range(clients)]
        for thread in self._threads:
            thread.start()

    def all_told(self) -> bool:
        return self.told + len(self.cut) == len(self._threads)

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "a client waits for ever"

    def _ask(self) -> None:
        client = Http1(self._address)
        while not self._stop.is_set():
            try:
                last = client.get().headers.get("connection") == "close"
            except (Cut, OSError) as error:
                with self._lock:
                    self.cut.append(str(error))
                return
            with self._lock:
                self.served += 1
                self.told += last
            if last:
                return
            time.sleep(0.002)
