"""Judge what a release promises; nothing here is shared with the methods that make the promises.

`queryveil.verify(release)` is the verb `queryveil.verify.verify`: the package can be called.
"""

from queryveil.callable_package import make_callable
from queryveil.verify.dp import verify_dp
from queryveil.verify.judging import judge, verify
from queryveil.verify.kdelta import verify_kdelta, verify_kdelta_by_force
from queryveil.verify.km import verify_km, verify_km_by_force
from queryveil.verify.plink import verify_linkability, verify_linkability_by_force
from queryveil.verify.swap import Arrivals, verify_swap, verify_swap_by_force
from queryveil.verify.swap_arrivals import arrivals_of
from queryveil.verify.transactions import verify_transactions, verify_transactions_by_force
from queryveil.verify.verdict import Verdict, Witness

__all__ = [
    "Arrivals",
    "Verdict",
    "Witness",
    "arrivals_of",
    "judge",
    "verify",
    "verify_dp",
    "verify_kdelta",
    "verify_kdelta_by_force",
    "verify_km",
    "verify_km_by_force",
    "verify_linkability",
    "verify_linkability_by_force",
    "verify_swap",
    "verify_swap_by_force",
    "verify_transactions",
    "verify_transactions_by_force",
]

make_callable(__name__, verb="verify")
