"""The seams, as Protocols."""
