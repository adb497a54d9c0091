"""HTML taken apart, strictly: for tests of what is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = ("meta", "link", "br", "img", "hr", "input", "wbr", "!doctype")


@dataclass(slots=True)
class Node:
    """An element: its name, attributes, text and what stands in it."""

    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    inside: list[Node | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text in it."""
        return "".join(each if isinstance(each, str) else each.text for each in self.inside)

    @property
    def nodes(self) -> Iterator[Node]:
        """Return it and all elements in it."""
        yield self
        for each in self.inside:
            if isinstance(each, Node):
                yield from each.nodes

    def all(self, name: str) -> list[Node]:
        """Return all elements of a name in it."""
        return [node for node in self.nodes if node.name == name]

    def of_class(self, name: str) -> list[Node]:
        """Return all elements of a class in it."""
        return [node for node in self.nodes if name in node.attributes.get("class", "").split()]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Node("")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        assert len(node.attributes) == len(attrs), f"an attribute of {tag} stands there twice"
        self.open[-1].inside.append(node)
        if tag not in _VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().name == tag, f"{tag} ends where something else is open"

    def handle_data(self, data: str) -> None:
        self.open[-1].inside.append(data)


def parsed(text: str) -> Node:
    """Take HTML apart; what is not closed in order, or has an attribute twice, is an error.

    >>> parsed('<p class="note">a &lt; b</p>').all("p")[0].text
    'a < b'
    """
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert len(reader.open) == 1, f"{reader.open[-1].name} is never closed"
    return reader.open[0]
