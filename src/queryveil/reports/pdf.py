"""Write a report as PDF."""

from queryveil.reports.value import Report


def render_pdf(report: Report, *, lang: str = "en") -> bytes:
    raise NotImplementedError
