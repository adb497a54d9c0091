"""What is promised, in plain words and in the paper's, and what is not."""

from __future__ import annotations

from queryveil.report.blocks import Block, Bullets, Paragraph, Section
from queryveil.report.papers import source_of
from queryveil.report.value import Report


def promised(report: Report) -> Section:
    """Give the promise."""
    promise = report.manifest.promise
    blocks: list[Block] = [Paragraph(text=promise.in_words())]
    source = source_of(promise, method=report.manifest.method, noise=report.manifest.noise)
    if source is not None:
        formal = f"As a definition, {source.name}: {source.definition}"
        blocks.append(Paragraph(text=f"{formal} {source.differs}".rstrip(), kind="quote"))
        blocks.append(Paragraph(text=f"After {source.paper}.", kind="note"))
    return Section(name="promise", title="What is promised", blocks=tuple(blocks))


def not_promised(report: Report) -> Section:
    """Give what nobody may conclude from it."""
    law = "Whether this makes the release anonymous under a law is a judgement for which these are the facts."
    return Section(
        name="not-promised",
        title="What is not promised",
        blocks=(Bullets(items=report.manifest.promise.not_promised()), Paragraph(text=law, kind="note")),
    )
