"""What industry and regulators do: there to be measured beside the methods of the papers."""

from queryveil.methods.practice.ec import Ec2026
from queryveil.methods.practice.google import Google2024
from queryveil.methods.practice.rules import BraveWdp, Ddg2026, Mozilla

__all__ = ["BraveWdp", "Ddg2026", "Ec2026", "Google2024", "Mozilla"]
