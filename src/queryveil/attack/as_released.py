"""The attacker who believes the release as it stands."""

from __future__ import annotations

from queryveil.attack.exposure import Exposure
from queryveil.attack.truth import Truth


def as_released(truth: Truth) -> Exposure:
    """Read every released row as if its user had asked its query; on a swapped log that finds nothing."""
    return Exposure.counted(
        attacker="as_released",
        knows="the swapped rows",
        what="rows",
        n_targets=truth.n_targets,
        n_found=truth.n_hit_as_released(),
        n_by_chance=truth.n_by_chance,
    )
