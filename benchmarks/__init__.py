"""Measurements: each compares in one run, because machines are noisy and only ratios count."""
