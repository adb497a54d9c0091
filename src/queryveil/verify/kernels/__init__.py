"""Compiled inner loops of the checkers: arrays in, arrays out. Nothing here is shared with the methods."""
