"""Danlu (丹炉): an open, self-hosted AI training platform that speaks ModelArts' API."""

__version__ = "0.1.0"
