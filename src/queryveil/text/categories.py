"""The categories of interest: the 16 top levels of the Open Directory Project."""

from __future__ import annotations

from typing import Final

CATEGORIES: Final = (
    "Arts",
    "Business",
    "Computers",
    "Games",
    "Health",
    "Home",
    "Kids and Teens",
    "News",
    "Recreation",
    "Reference",
    "Regional",
    "Science",
    "Shopping",
    "Society",
    "Sports",
    "World",
)
UNCLASSIFIED: Final = "Unclassified"
"""What a query without a category is called where a name is needed."""
