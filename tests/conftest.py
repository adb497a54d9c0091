"""Settings for all tests."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# The first call of a kernel compiles it, so single examples may take seconds.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("soak", parent=settings.get_profile("house"), max_examples=2000)
settings.load_profile("soak" if os.environ.get("QUERYVEIL_SOAK") else "house")
