"""The category of a query, by the units of words that it is made of."""

from queryveil.text.classifier.classifier import Classifier, Kind
from queryveil.text.classifier.tables import CATEGORIES, UNCLASSIFIED

__all__ = ["CATEGORIES", "UNCLASSIFIED", "Classifier", "Kind"]
