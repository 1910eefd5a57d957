"""What can go wrong between a client and an API server, one class for each."""

from .answers import BrokenGzip, LoseAnswer, Refuse, Silent
from .breaks import Close, CutFrame, ErrorEvent, GoAway, Stall
from .lists import NoMark, PastList, ShuffledList
from .order import Delay, Hold, Precede, Repeat

__all__ = [
    "BrokenGzip", "Close", "CutFrame", "Delay", "ErrorEvent", "GoAway", "Hold", "LoseAnswer", "NoMark", "PastList", "Precede", "Refuse",
    "Repeat", "ShuffledList", "Silent", "Stall",
]  # fmt: skip
