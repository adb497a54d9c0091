"""The definition behind each promise, as its paper states it, the reference, and what the checker counts."""

from collections.abc import Sequence
from dataclasses import dataclass

from queryveil import guarantees
from queryveil.release import Noise

_KM = (
    "T. Burghardt, K. Böhm, A. Guttmann, C. Clifton: Anonymous Search Histories Featuring Personalized Advertisement - "
    "Balancing Privacy with Economic Interests. Transactions on Data Privacy 4(1), 2011"
)
_CLUMP = (
    "A. Milani Fard, K. Wang: An Effective Clustering Approach to Web Query Log Anonymization. Conference on Security "
    "and Cryptography (SECRYPT), 2010"
)
_PARTITION = (
    "Y. He, J. F. Naughton: Anonymization of Set-Valued Data via Top-Down, Local Generalization. Very Large Data Bases "
    "(VLDB), 2009"
)
_DP = (
    "A. Korolova, K. Kenthapadi, N. Mishra, A. Ntoulas: Releasing Search Queries and Clicks Privately. International "
    "World Wide Web Conference (WWW), 2009"
)
_NOISE = {
    "truncated-geometric": "D. Desfontaines, J. Voss, B. Gipson, C. Mandayam: Differentially Private Partition "
    "Selection. Privacy Enhancing Technologies (PoPETs), 2022",
    "gaussian": "C. L. Canonne, G. Kamath, T. Steinke: The Discrete Gaussian for Differential Privacy. Neural "
    "Information Processing Systems (NeurIPS), 2020",
    "zealous": "M. Götz, A. Machanavajjhala, G. Wang, X. Xiao, J. Gehrke: Publishing Search Logs - A Comparative Study "
    "of Privacy Guarantees. IEEE Transactions on Knowledge and Data Engineering 24(3), 2012",
}
"""Where noise comes from, if not from the paper of the promise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A definition with the numbers of a promise, how ours differs, the paper, and how the checker judges it."""

    name: str
    definition: str
    differs: str = ""
    paper: str
    checked: str


def source_of(promise: guarantees.Guarantee, *, method: str, noise: Sequence[Noise] = ()) -> Source | None:
    """Return the definition behind a promise, and where the `noise` is from; None where nothing is promised.

    >>> source_of(guarantees.KmAnonymity(k=5, m=2), method="km").name
    '(5, 2)-anonymity'
    """
    match promise:
        case guarantees.KmAnonymity(k=k, m=None):
            return Source(
                name=f"k-anonymity of whole histories, k = {k}",
                definition=f"Every history, as a set of terms, is identical to at least k - 1 = {k - 1} others.",
                differs="The paper has no such case; it implies (k, m)-anonymity for every m.",
                paper=_KM,
                checked=f"In the data file, the histories equal to each user's were counted; {k} are needed.",
            )
        case guarantees.KmAnonymity(k=k, m=m, window=window, time_unit=unit):
            differs = f"It holds within each window of {window}, and ids differ between windows." if window else ""
            differs = f"Released times, stretches of {unit}, count as terms." if unit else differs
            terms = "Every term" if m == 1 else f"Every combination of up to {m} terms"
            return Source(
                name=f"({k}, {m})-anonymity",
                definition=f"Any combination of m = {m} or fewer terms out of the history of a user appears in at "
                f"least k - 1 = {k - 1} histories of other users.",
                differs=differs,
                paper=f"{_KM}, definition 1",
                checked=f"{terms} of each user id in the data file was counted; {k} ids must share it.",
            )
        case guarantees.TransactionAnonymity(k=k):
            return Source(
                name=f"k-anonymity of transactions, k = {k}",
                definition=f"The transactions are clustered so that each cluster holds at least k = {k} of "
                "them, and every transaction of a cluster is generalized to the same transaction.",
                paper=_PARTITION if method == "partition" else _CLUMP,
                checked=f"Identical transactions in the data file were counted; {k} are needed of each.",
            )
        case guarantees.KdeltaAnonymity(k=k, delta=delta, same_texts=same_texts, same_days=days, max_distance=near):
            pairs = f"pairs of query cluster and URL{' on each day' if days else ''}"
            same = "each query being a cluster of its own" if same_texts else "clusters no wider than δ"
            equal = f"at a distance D of at most {near:g}" if near else "not similar but equal"
            shares = f"shares that differ by {near:g} at most" if near else "equal shares"
            return Source(
                name=f"kδ-anonymity, k = {k}, δ = {delta:g}",
                definition=f"For every user there are at least k - 1 = {k - 1} other users who are δ-similar, based on "
                "their query records.",
                differs=f"Stricter: the shares over {pairs} are {equal}, {same}.",
                paper="Y. Hong, X. He, J. Vaidya, N. Adam, V. Atluri: Effective Anonymization of Query Logs. "
                "Conference on Information and Knowledge Management (CIKM), 2009, definition 1",
                checked="From the data file, the width of each cluster of queries and the shares of each user id were "
                f"computed; {k} ids must have {shares}.",
            )
        case guarantees.Linkability(p=p, strict=strict):
            average = "As in the paper, the probability is that of an average profile, not that of each term."
            return Source(
                name=f"p-linkability, p = {p:g}",
                definition="The probability of linking a user to an individual term in a user group does not exceed "
                f"p = {p:g}.",
                differs="Stricter: it is held for every single term of a group." if strict else average,
                paper="Y. Zhu, L. Xiong: Anonymizing User Profiles for Personalized Web Search. Technical "
                "Report TR-2010-007, Emory University, 2010, definition 1",
                checked="The numbers of each group in the data file were checked against each other and against p.",
            )
        case guarantees.SwapAnonymity(k=k, l=n_users):
            stricter = f"Stricter: at least l = {n_users} distinct users wait, where the paper asks for 2"
            wait = "As in the paper at least 2 distinct users wait" if n_users == 2 else stricter
            return Source(
                name=f"exchange in pools, k = {k}, l = {n_users}",
                definition=f"A query is released once at least k = {k} queries of its category wait, and is given to "
                "another user among those who wait.",
                differs=f"{wait}; nobody is given a query of their own.",
                paper="D. Pàmies-Estrems, J. Castellà-Roca, A. Viejo: Working at the Web Search Engine Side to "
                "Generate Privacy-Preserving User Profiles. Expert Systems with Applications 64, 2016",
                checked="Beside the original, the events that could wait when each row left were counted, and for each "
                "row it was looked up whether its user had asked it.",
            )
        case guarantees.DifferentialPrivacy(epsilon=epsilon, delta=delta):
            mechanisms = dict.fromkeys(part.mechanism for part in noise)
            return Source(
                name=f"(ε, δ)-differential privacy, ε = {epsilon:g}, δ = {delta:g}",
                definition="For any two logs that differ in the rows of one user, and any set of releases, the chance "
                "of a release from the set under one log is at most exp(ε) times that under the other, plus δ.",
                differs="The noise is of whole numbers, each user is counted once for a query, and the threshold is "
                "worked out so that the promise is exact; the manifest says how noise was added.",
                paper="; the noise after ".join([_DP, *(_NOISE[each] for each in mechanisms if each in _NOISE)]),
                checked="From what the manifest says of the noise, epsilon and delta were worked out again in another "
                "way, and the counts were held against the threshold. That the noise was drawn as it says cannot be "
                "told from files.",
            )
        case guarantees.AskedTexts() | guarantees.AskedEntities() | guarantees.TextRule() | guarantees.NoPromise():
            return None
