"""Verify the promises of releases, one module per guarantee, sharing no code with the methods."""

from queryveil.checks.arrivals import Arrivals, arrivals_of
from queryveil.checks.dp import verify_dp
from queryveil.checks.judging import judge, verify
from queryveil.checks.kdelta import verify_kdelta
from queryveil.checks.km import verify_km
from queryveil.checks.plink import verify_linkability
from queryveil.checks.swap import verify_swap
from queryveil.checks.transactions import verify_transactions
from queryveil.checks.verdict import Verdict, Witness

__all__ = ["Arrivals", "Verdict", "Witness", "arrivals_of", "judge", "verify", "verify_dp", "verify_kdelta"]
__all__ += ["verify_km", "verify_linkability", "verify_swap", "verify_transactions"]
