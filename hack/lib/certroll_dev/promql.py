"""Which metrics an expression of PromQL reads, with which labels, and which labels its result has.

Whether Prometheus accepts an expression is for promtool to say. This finds what Prometheus accepts in silence and answers with
nothing: a metric or a label that does not exist, and two operands whose labels never match.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

Labels = frozenset[str]
_NONE: Labels = frozenset()

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d[\w.]*)|(?P<string>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|(?P<range>\[[^\]]*\])"
    r"|(?P<word>[A-Za-z_:][\w:]*)|(?P<operator>=~|!~|!=|==|>=|<=|[-+*/%^<>=(){},]))"
)
_AGGREGATIONS = {"sum", "min", "max", "avg", "count", "group", "stddev", "stdvar", "topk", "bottomk", "quantile"}
_WITH_A_NUMBER = {"topk", "bottomk", "quantile"}
_KEEP_ALL = {"topk", "bottomk"}
# Functions whose result has the labels of their vector.
_OF_A_VECTOR = {
    "rate", "increase", "delta", "changes", "resets", "abs", "ceil", "floor", "clamp", "clamp_min", "clamp_max", "sort", "sort_desc",
    "avg_over_time", "max_over_time", "min_over_time", "sum_over_time", "count_over_time", "last_over_time",
}  # fmt: skip
_BINARY = ({"or"}, {"and", "unless"}, {"==", "!=", ">", "<", ">=", "<="}, {"+", "-"}, {"*", "/", "%"}, {"^"})


class Problem(Exception):
    """What is wrong with an expression."""


@dataclass(frozen=True)
class Matcher:
    label: str
    operator: str
    value: str


@dataclass(frozen=True)
class Selector:
    metric: str
    matchers: tuple[Matcher, ...]


@dataclass
class Reading:
    """Of one expression. `labels`: None for a scalar."""

    selectors: list[Selector] = field(default_factory=list)
    labels: Labels | None = None


def read(text: str, labels_of: Callable[[str], Labels | None]) -> Reading:
    """`labels_of`: the labels that a series of that name can have; None: there is no such metric."""
    reader = _Reader(text, labels_of)
    reading = Reading(reader.selectors)
    reading.labels = reader.binary(0)
    if reader.kind:
        raise Problem(f"'{reader.text}' is not understood after the expression")
    return reading


class _Reader:
    def __init__(self, text: str, labels_of: Callable[[str], Labels | None]) -> None:
        self.selectors: list[Selector] = []
        self._labels_of = labels_of
        self._tokens = _tokens(text)
        self._next()

    # --- tokens

    def _next(self) -> None:
        self.kind, self.text = next(self._tokens, ("", ""))

    def _is(self, *texts: str) -> bool:
        return self.kind in ("operator", "word") and self.text in texts

    def _take(self, *texts: str) -> str:
        """One of these; where none is given, whatever comes."""
        if not self._is(*texts) and texts:
            raise Problem(f"'{self.text}' in the place of {' or '.join(texts)}")
        text = self.text
        self._next()
        return text

    def _accept(self, text: str) -> bool:
        found = self._is(text)
        if found:
            self._next()
        return found

    def _names(self) -> Labels:
        """(a, b)"""
        names = set()
        self._take("(")
        while not self._accept(")"):
            names.add(self._take())
            self._accept(",")
        return frozenset(names)

    # --- expressions

    def binary(self, level: int) -> Labels | None:
        if level == len(_BINARY):
            return self._unary()
        left = self.binary(level + 1)
        while self._is(*_BINARY[level]):
            operator = self._take()
            self._accept("bool")
            on = self._names() if self._accept("on") else None
            ignored = self._names() if self._accept("ignoring") else _NONE
            side = self.text if self._is("group_left", "group_right") else ""
            more = _NONE
            if side:
                self._next()
                more = self._names() if self._is("(") else _NONE
            right = self.binary(level + 1)
            left = _joined(operator, left, right, on, ignored, side, more)
        return left

    def _unary(self) -> Labels | None:
        if self._is("-", "+"):
            self._next()
        labels = self._primary()
        while self.kind == "range":
            self._next()
        if self._accept("offset"):
            self._next()
        return labels

    def _primary(self) -> Labels | None:
        if self.kind in ("number", "string"):
            self._next()
            return None
        if self._accept("("):
            labels = self.binary(0)
            self._take(")")
            return labels
        if self._is("{"):
            return self._selector("")
        if self.kind != "word":
            raise Problem(f"'{self.text}' is not understood")
        word = self._take()
        if word in _AGGREGATIONS:
            return self._aggregation(word)
        return self._function(word) if self._is("(") else self._selector(word)

    def _aggregation(self, name: str) -> Labels:
        how = self._grouping()
        self._take("(")
        if name in _WITH_A_NUMBER:
            self.binary(0)
            self._take(",")
        labels = _vector(name, self.binary(0))
        self._take(")")
        how = how or self._grouping()
        if not how:
            return labels if name in _KEEP_ALL else _NONE
        word, names = how
        _need(name, names, labels)
        if name in _KEEP_ALL:
            return labels
        return names if word == "by" else labels - names

    def _grouping(self) -> tuple[str, Labels] | None:
        return (self._take(), self._names()) if self._is("by", "without") else None

    def _function(self, name: str) -> Labels | None:
        self._take("(")
        arguments: list[tuple[Labels | None, str]] = []
        while not self._accept(")"):
            text = self.text
            arguments.append((self.binary(0), text))
            self._accept(",")
        if name == "time":
            return None
        if name == "scalar":
            return None
        if name == "vector":
            return _NONE
        if name == "absent":
            _vector(name, arguments[0][0])
            return frozenset(each.label for each in self.selectors[-1].matchers if each.operator == "=")
        if name == "label_replace":
            labels, target, source = _vector(name, arguments[0][0]), arguments[1][1].strip("\"'"), arguments[3][1].strip("\"'")
            _need(name, frozenset({source} - {""}), labels)
            return labels | {target}
        if name == "histogram_quantile":
            labels = _vector(name, arguments[1][0])
            _need(name, frozenset({"le"}), labels)
            return labels - {"le"}
        if name in _OF_A_VECTOR:
            return _vector(name, arguments[0][0])
        raise Problem(f"the function {name} is not known here: add it to promql.py")

    # --- selectors

    def _selector(self, name: str) -> Labels:
        matchers = self._matchers()
        names = [name] if name else [each for matcher in matchers if matcher.label == "__name__" for each in matcher.value.split("|")]
        if not names:
            raise Problem("a selector without a metric")
        matchers = tuple(each for each in matchers if each.label != "__name__")
        labels: list[Labels] = []
        for each in names:
            found = self._labels_of(each)
            if found is None:
                raise Problem(f"there is no metric {each}")
            _need(each, frozenset(matcher.label for matcher in matchers), found)
            self.selectors.append(Selector(each, matchers))
            labels.append(found)
        return frozenset.intersection(*labels)

    def _matchers(self) -> tuple[Matcher, ...]:
        found = []
        if self._accept("{"):
            while not self._accept("}"):
                label, operator, value = self._take(), self._take("=", "!=", "=~", "!~"), self.text[1:-1]
                self._next()
                found.append(Matcher(label, operator, value))
                self._accept(",")
        return tuple(found)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if not found:
            raise Problem(f"'{text[at:at + 20]}' is not understood")
        at = found.end()
        kind = found.lastgroup or ""
        yield kind, found[kind]


def _vector(of: str, labels: Labels | None) -> Labels:
    if labels is None:
        raise Problem(f"{of} takes a vector")
    return labels


def _need(of: str, names: Labels, labels: Labels) -> None:
    missing = sorted(names - labels)
    if missing:
        raise Problem(f"{of} has no label {', '.join(missing)}; there are {', '.join(sorted(labels)) or 'none'}")


def _joined(
    operator: str, left: Labels | None, right: Labels | None, on: Labels | None, ignored: Labels, side: str, more: Labels
) -> Labels | None:
    """The labels of the result; Problem where none of the left can match one of the right."""
    if left is None or right is None:
        return right if left is None else left
    if on is not None:
        _need(f"one side of '{operator}'", on, left & right)
    elif operator != "or" and left - ignored != right - ignored:
        raise Problem(f"'{operator}' never matches: {', '.join(sorted(left ^ right))} are on one side only")
    if operator == "or":
        return left | right
    if operator in ("and", "unless"):
        return left
    if side:
        many, one = (left, right) if side == "group_left" else (right, left)
        _need(side, more, one)
        return many | more
    return on if on is not None else left - ignored
