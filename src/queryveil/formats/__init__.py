"""Read and write query logs, transactions, profiles, groups and counts; detect file formats and layouts."""

from queryveil.data import Format, Layout
from queryveil.formats.aggregates import read_groups, read_tallies, tallies_layout, write_groups, write_tallies
from queryveil.formats.layouts import extension, layout_for
from queryveil.formats.profiles import are_profiles, read_original, read_profiles
from queryveil.formats.read import read_log
from queryveil.formats.records import BadRowPolicy
from queryveil.formats.shape import Shape, shape_of
from queryveil.formats.streams import Content
from queryveil.formats.transactions import read_transactions, transactions_layout, write_transactions
from queryveil.formats.write import count_formulas, write_log

__all__ = ["BadRowPolicy", "Content", "Format", "Layout", "Shape", "are_profiles", "count_formulas", "extension"]
__all__ += ["layout_for", "read_groups", "read_log", "read_original", "read_profiles", "read_tallies"]
__all__ += ["read_transactions", "shape_of", "tallies_layout", "transactions_layout"]
__all__ += ["write_groups", "write_log", "write_tallies", "write_transactions"]
