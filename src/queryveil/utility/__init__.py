"""What a release cost: measures that see the original too, and nothing of how the release was made."""

from queryveil.utility.generalisation import average_length, average_level, ggd, ncp
from queryveil.utility.score import Score

__all__ = ["Score", "average_length", "average_level", "ggd", "ncp"]
