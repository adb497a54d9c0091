"""Classify queries into categories by their semantic units."""

from queryveil.text.classifier.classifier import Classifier, Kind
from queryveil.text.classifier.units import CATEGORIES, UNCLASSIFIED

__all__ = ["CATEGORIES", "UNCLASSIFIED", "Classifier", "Kind"]
