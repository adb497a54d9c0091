"""Writes docs/reference/report.schema.json, the shape of a report's JSON twin: python -m tools.report_schema."""

from __future__ import annotations

from pathlib import Path

import msgspec

from queryveil.reports.twin import schema

FILE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "report.schema.json"


def text() -> str:
    """Return the file as it should be."""
    return msgspec.json.format(msgspec.json.encode(schema()), indent=2).decode() + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
