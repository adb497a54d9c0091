"""Partition's classes on the paper's example; what it shares with Clump is tested there."""

from __future__ import annotations

from queryveil import Partition, Transactions, verify
from queryveil.testing import five_baskets, food

FOOD = food()
EXAMPLE = five_baskets()


def released(method: Partition, data: Transactions) -> list[list[str]]:
    return sorted(sorted(items) for items in method.anonymize(data).transactions.frame["items"].to_list())


def test_partition_gives_the_papers_classes() -> None:
    partition = Partition(k=2, taxonomy=FOOD)
    assert released(partition, EXAMPLE) == [["food"]] * 3 + [["fruit", "meat"]] * 2
    # The paper prints 8.85 for 2 x (2/7 + 1/7) + 1 + 3 x 1 + 5, which is 9.86.
    assert partition.anonymize(EXAMPLE).manifest.measures["ggd"] == 9.86


def test_sets_are_released_not_bags() -> None:
    bags = Transactions.from_frame({"items": [["apple", "apple", "beef"], ["apple", "beef", "beef"]]})
    assert released(Partition(k=2, taxonomy=FOOD), bags) == [["apple", "beef"]] * 2


def test_the_release_is_verified_against_its_original() -> None:
    release = Partition(k=2, taxonomy=FOOD).anonymize(EXAMPLE)
    assert verify(release, original=EXAMPLE, taxonomy=FOOD).holds
    assert release.manifest.parameters["taxonomy"] == "own"
