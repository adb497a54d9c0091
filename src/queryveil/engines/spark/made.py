"""What a method has made on a cluster, before it is written."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from queryveil.engines.spark.writing import Written
from queryveil.formats.write import arrange
from queryveil.log import ROLES, Layout
from queryveil.release import Manifest, Release

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Made:
    """Rows that may leave, how they are written, and the manifest that goes with them."""

    frame: DataFrame
    written: Written
    manifest: Manifest


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class MadeHere:
    """A release that was small enough to come to the driver."""

    release: Release


def as_log(layout: Layout, columns: list[str]) -> Written:
    """Write rows as the log that they came from."""
    names = {role: layout.names.get(role, role) for role in ROLES if role in columns}
    return Written(kind="log", layout=layout, arrange=partial(arrange, layout=layout), names=names)
