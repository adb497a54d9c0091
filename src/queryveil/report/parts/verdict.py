"""Whether the promise holds, what was checked and how."""

from __future__ import annotations

from queryveil.guarantees import (
    DifferentialPrivacy,
    Guarantee,
    KdeltaAnonymity,
    KmAnonymity,
    Linkability,
    SwapAnonymity,
    TransactionAnonymity,
)
from queryveil.report.blocks import Block, Bullets, Paragraph, Section
from queryveil.report.value import Report, State

_BY = "The checker shares no code with the method that made the release."
_BY_OF_SWAP = "The checker shares the categories and the rules for identifiers with the method, and no other code."
_NOT_BESIDE = (
    "The release was judged by itself. Beside the original, verify also looks for anything in it that the original "
    "does not have: queryveil report DIR --original LOG."
)
_BESIDE = "It was also compared with the original, and nothing was found that the original does not have."
_BESIDE_OF_DP = "It was also compared with the original: whatever it holds was asked by somebody."
_BESIDE_OF_KDELTA = (
    "It was also compared with the original: every query with its URL stands there too, made-up rows or not."
)
_CHECKED_MADE_UP = (
    "From what the manifest says of the noise, epsilon and delta were worked out again in another way. That the noise "
    "was drawn as it says, and that the rows were drawn from the noisy counts alone, cannot be told from files."
)


def judged(report: Report) -> Section:
    """Give the verdict."""
    judgement, blocks = report.judgement, list[Block]()
    verdict = judgement.verdict
    if verdict is None:
        blocks.append(Paragraph(text=_why_none(report), kind="warning"))
        return Section(name="verdict", title="Does it hold?", blocks=tuple(blocks))
    blocks.append(Paragraph(text=verdict.in_words(), kind="plain" if verdict.holds else "warning"))
    is_swap = isinstance(verdict.promise, SwapAnonymity)
    checked = _CHECKED_MADE_UP if verdict.is_made_up else _what_was_checked(verdict.promise)
    blocks.append(Paragraph(text=f"{checked} {_BY_OF_SWAP if is_swap else _BY}"))
    if not verdict.holds:
        blocks.append(Bullets(items=tuple(_sentence(witness.in_words()) for witness in verdict.witnesses)))
    elif judgement.beside_original and not is_swap:
        blocks.append(Paragraph(text=_beside(verdict.promise)))
    if not judgement.beside_original:
        blocks.append(Paragraph(text=_NOT_BESIDE, kind="note"))
    warned = report.manifest.warnings
    blocks += [Paragraph(text=f"Note: {note}.", kind="warning" if note in warned else "note") for note in verdict.notes]
    return Section(name="verdict", title="Does it hold?", blocks=tuple(blocks))


def _why_none(report: Report) -> str:
    if report.state is State.NOTHING_PROMISED:
        return f"There is nothing to judge: {report.judgement.reason}."
    return f"The promise was not judged: {report.judgement.reason}."


def _beside(promise: Guarantee) -> str:
    match promise:
        case KdeltaAnonymity():
            return _BESIDE_OF_KDELTA
        case DifferentialPrivacy():
            return _BESIDE_OF_DP
        case _:
            return _BESIDE


def _what_was_checked(promise: Guarantee) -> str:
    match promise:
        case KmAnonymity(m=None):
            return f"In the data file, the histories equal to each user's were counted; {promise.k} are needed."
        case KmAnonymity():
            terms = "Every term" if promise.m == 1 else f"Every combination of up to {promise.m} terms"
            return f"{terms} of each user id in the data file was counted; {promise.k} ids must share it."
        case TransactionAnonymity():
            return f"Identical transactions in the data file were counted; {promise.k} are needed of each."
        case KdeltaAnonymity():
            return (
                "From the data file, the width of each cluster of queries and the shares of each user id were "
                f"computed; {promise.k} ids must have equal shares."
            )
        case Linkability():
            return "The numbers of each group in the data file were checked against each other and against p."
        case SwapAnonymity():
            return (
                "Beside the original, the events that could wait when each row left were counted, and for each row it "
                "was looked up whether its user had asked it."
            )
        case DifferentialPrivacy():
            return (
                "From what the manifest says of the noise, epsilon and delta were worked out again in another way, and "
                "the counts were held against the threshold. That the noise was drawn as it says cannot be told from "
                "files."
            )
        case _:
            return ""


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
