"""The page around a report: one HTML file that asks for nothing else, in light, dark, narrow and print."""

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from string import Template
from typing import Literal

from queryveil.html_tables import Html, escape


def page(*, title: str, body: Iterable[Html], lead: Iterable[Html] = (), kicker: str = "", footer: str = "") -> str:
    """Return the whole document; `lead` stands below the title, and `kicker` is a small line above it.

    It has no script, and its policy forbids the browser to load anything.

    >>> text = page(title="A < B", body=[section("What it cost", body=[paragraph("Nothing.")])])
    >>> "<title>A &lt; B</title>" in text, "<h1>A &lt; B</h1>" in text
    (True, True)
    """
    header = [Html(f'<p class="kicker">{escape(kicker)}</p>')] if kicker else []
    header += [Html(f"<h1>{escape(title)}</h1>"), *lead]
    return Template(_template("page.html")).substitute(
        title=escape(title),
        style=_template("style.css").rstrip(),
        header=joined(header),
        body=joined(body),
        footer=f"<footer>{escape(footer)}</footer>" if footer else "",
    )


def joined(parts: Iterable[Html]) -> Html:
    """Put HTML one after another."""
    return Html("\n".join(parts))


def section(heading: str, *, body: Iterable[Html], name: str = "") -> Html:
    """Return a section; a `name` lets links lead to it (`#name`)."""
    where = f' id="{escape(name)}"' if name else ""
    return joined([Html(f"<section{where}>"), Html(f"<h2>{escape(heading)}</h2>"), *body, Html("</section>")])


def paragraph(text: str, *, kind: Literal["", "lead", "note", "warning", "quote"] = "") -> Html:
    """Return a paragraph; text is escaped unless it is HTML."""
    return Html(f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>")


def bullets(items: Iterable[str]) -> Html:
    """Return a list."""
    return joined([Html("<ul>"), *(Html(f"<li>{escape(item)}</li>") for item in items), Html("</ul>")])


def badge(text: str, *, kind: Literal["good", "bad", "open"]) -> Html:
    """Return a verdict that is seen at once; the text says it too, so the colour is never alone."""
    return Html(f'<span class="badge {kind}">{escape(text)}</span>')


def command(text: str) -> Html:
    """Return lines to type."""
    return Html(f"<pre><code>{escape(text)}</code></pre>")


def tiles(figures: Iterable[tuple[str, str, str]]) -> Html:
    """Return a row of large figures: what each is, the figure, and a small line below it (may be empty)."""
    lines = ['<dl class="tiles">']
    for name, figure, below in figures:
        small = f"<small>{escape(below)}</small>" if below else ""
        lines.append(f"<div><dt>{escape(name)}</dt><dd>{escape(figure)}{small}</dd></div>")
    return Html("\n".join([*lines, "</dl>"]))


def scrolling(wide: Html) -> Html:
    """Let a wide table scroll by itself on a narrow screen; it can be reached by keyboard."""
    return Html(f'<div class="scroll" tabindex="0" role="group" aria-label="table">{wide}</div>')


@cache
def _template(name: str) -> str:
    return files("queryveil.reports").joinpath("templates", name).read_text(encoding="utf-8")
