"""What a verdict says, and what it never says."""

from __future__ import annotations

import json

import pytest
from tests.support.km_by_force import verify_km_by_force

from queryveil.checks import Verdict, verify_km
from queryveil.data import QueryLog
from queryveil.errors import BadInput
from queryveil.guarantees import KmAnonymity

LOG = QueryLog.from_frame(
    {
        "user": ["ida", "ida", "otto", "otto"],
        "query": ["Zebra crossing", "quilt", "crossing quilt", "nothing zebra zebra"],
    }
)


def broken() -> Verdict:
    return verify_km(LOG, KmAnonymity(k=2, m=None))


def test_no_text_of_the_log_is_in_a_verdict() -> None:
    for judge in (verify_km, verify_km_by_force):
        for m in (1, 2, None):
            verdict = judge(LOG, KmAnonymity(k=2, m=m))
            said = [repr(verdict), str(verdict.to_dict()), verdict.in_words(), *verdict.notes]
            for secret in ("zebra", "crossing", "quilt", "nothing", "ida", "otto"):
                assert not any(secret in text.lower() for text in said)


def test_show_gives_the_terms_in_the_order_of_their_rows() -> None:
    lines = broken().show(LOG)
    assert [line.partition(":")[0] for line in lines] == [
        "zebra + crossing + quilt",
        "crossing + quilt + nothing + zebra",
    ]


def test_showing_another_log_is_a_clear_error() -> None:
    other = QueryLog.from_frame({"user": ["ida"], "query": [""]})
    with pytest.raises(BadInput, match="not the log that was judged"):
        broken().show(other)


def test_a_verdict_goes_to_json_with_its_promise() -> None:
    plain = json.loads(json.dumps(broken().to_dict()))
    assert plain["promise"] == {"model": "km", "k": 2, "m": None, "window": None, "items": False, "time_unit": None}
    assert plain["holds"] is False
    assert plain["n_violations"] == 2
    assert plain["witnesses"][0] == {
        "size": 3,
        "support": 1,
        "kind": "history",
        "rows": [1, 1, 2],
        "positions": [1, 2, 1],
        "needed": 2,
    }


def test_a_verdict_is_one_line_in_words() -> None:
    assert verify_km(LOG, KmAnonymity(k=2, m=1)).in_words() == (
        "The promise is broken: 1 violation, for example a combination of 1 term is shared by 1 user, "
        "2 are needed (row 4)."
    )
    held = verify_km(QueryLog.from_frame({"user": ["1", "2"], "query": ["a", "a"]}), KmAnonymity(k=2, m=1))
    assert held.in_words() == "(2, 1)-anonymity holds for 2 users."


def test_joining_violations_breaks_a_verdict_and_keeps_the_smallest_witnesses() -> None:
    verdict = verify_km(LOG, KmAnonymity(k=2, m=1))
    many = [broken().witnesses[1]] * 12
    joined = verdict.joined((12, many))
    assert (joined.holds, joined.n_violations, len(joined.witnesses)) == (False, 13, 10)
    assert joined.witnesses[0] == verdict.witnesses[0]
    assert verdict.joined((0, [])) == verdict
