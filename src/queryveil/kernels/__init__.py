"""Compiled inner loops: arrays in, arrays out, no knowledge of logs or files."""
