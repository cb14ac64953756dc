"""Nouns, state tables and rules: standard library only, no I/O, no clock."""
