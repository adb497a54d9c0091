"""Anonymizing live: sources, pools, profiles, sinks, and a service that loses nothing."""

__all__ = ["ports"]

from queryveil.service import ports
