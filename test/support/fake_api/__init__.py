"""An API server for tests that lies: a real one seen through a recorder, or its recording alone, broken by a schedule of faults.

    operator ── watches: HTTP/2 ────> server ──> schedule ──> fault ──> source: upstream (a real API server) or replay (a tape)
             └─ requests: HTTP/1.1 ─┘                           └──────> tape, and what tests ask of it

It stands only where a fault cannot be had otherwise: what is kept and decided is the real API server's, or was. By hand:

    PYTHONPATH=test/support build/venv/bin/python -m fake_api record --kubeconfig ~/.kube/config --tape t.jsonl
    PYTHONPATH=test/support build/venv/bin/python -m fake_api replay --tape t.jsonl
"""

from .call import Call
from .fake import FakeApi
from .message import Answer, Request
from .schedule import Rule, Schedule, frames, lists, requests, watches, writes
from .tape import Tape

__all__ = [
    "Answer", "Call", "FakeApi", "Request", "Rule", "Schedule", "Tape", "frames", "lists", "requests", "watches", "writes",
]  # fmt: skip
