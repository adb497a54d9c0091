"""Search the most useful release for a purpose under a limit of exposure."""

from queryveil.planning.deciding import Decision, Finding
from queryveil.planning.planned import Planned, Wanted, read_wanted
from queryveil.planning.releasing import plan

__all__ = ["Decision", "Finding", "Planned", "Wanted", "plan", "read_wanted"]
