"""Classify queries into categories by their semantic units."""

from queryveil.text.classifier.classifier import CATEGORIES, UNCLASSIFIED, Classifier, Kind

__all__ = ["CATEGORIES", "UNCLASSIFIED", "Classifier", "Kind"]
