"""A report as PDF and as JSON with a schema."""

from __future__ import annotations

import re
import subprocess
import sys

import msgspec
import pytest
from tests.support.made_up_reports import ALL, key_of, made_up_log, made_up_report, release_by
from tools import report_schema

from queryveil.methods import Dp
from queryveil.reports import render, report
from queryveil.reports.languages import LANGUAGES
from queryveil.reports.twin import read_json

pytest.importorskip("typst")


def test_the_schema_in_the_documents_is_that_of_the_program() -> None:
    assert report_schema.FILE.read_text(encoding="utf-8") == report_schema.text()


@pytest.mark.slow
@pytest.mark.parametrize("method", ALL)
def test_the_json_of_every_report_has_the_shape_of_the_schema(method: str) -> None:
    for made in (
        report(release_by(method)),
        report(release_by(method), original=made_up_log(), key=key_of(method), n_targets=5),
    ):
        assert read_json(render(made, format="json")).folder == made.folder


def test_the_json_of_noisy_counts_and_of_texts_that_were_asked_for_has_it_too() -> None:
    noisy = Dp(epsilon=4.0, delta=1e-3, seed=1).anonymize(made_up_log())
    read = read_json(render(report(noisy, show=True), format="json"))
    assert read.top_queries
    assert read.validity.seed is not None


def test_json_that_lacks_a_field_or_has_a_share_above_one_is_no_report() -> None:
    plain = made_up_report().to_dict()
    with pytest.raises(msgspec.ValidationError, match="isolation"):
        read_json(msgspec.json.encode({name: value for name, value in plain.items() if name != "isolation"}))
    with pytest.raises(msgspec.ValidationError, match="limit"):
        read_json(msgspec.json.encode(plain | {"risk": plain["risk"] | {"limit": 1.5}}))
    with pytest.raises(msgspec.ValidationError, match="version"):
        read_json(msgspec.json.encode(plain | {"version": 99}))


@pytest.mark.slow
@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_report_is_a_few_pages_of_pdf_and_the_same_report_the_same_bytes(lang: str) -> None:
    made = made_up_report(warnings=("times are exact", "#panic() $x$ *b* <l> @r \\u{1f}"))
    pdf = render(made, format="pdf", lang=lang)
    assert isinstance(pdf, bytes)
    assert pdf.startswith(b"%PDF-")
    assert pdf == render(made, format="pdf", lang=lang)
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 8
    assert f"({lang})".encode() in pdf


@pytest.mark.slow
@pytest.mark.parametrize("method", ALL)
def test_every_kind_of_release_can_be_reported_on_as_pdf(method: str) -> None:
    assert len(render(report(release_by(method)), format="pdf")) > 10_000


MISSING = """
import sys
sys.modules["typst"] = None
from tests.support.made_up_reports import made_up_report
from queryveil.errors import MissingExtra
from queryveil.reports.pdf import render_pdf
try:
    render_pdf(made_up_report())
except MissingExtra as error:
    print(error)
"""


@pytest.mark.slow
def test_without_the_extra_it_says_what_to_install() -> None:
    done = subprocess.run([sys.executable, "-c", MISSING], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "a report as PDF needs an extra: pip install 'queryveil[pdf]'"
