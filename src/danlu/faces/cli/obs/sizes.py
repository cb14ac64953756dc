"""Sizes as people write them."""

from __future__ import annotations

from danlu.faces.cli.failure import USAGE, Failure

UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def rate(value: object) -> int:
    """Bytes a second in `500K`, `10M` or `1.5G` (also with `iB` or `/s` behind); 0 for None."""
    if value is None:
        return 0
    text = str(value).strip().upper().removesuffix("/S").removesuffix("IB").removesuffix("B")
    unit = text[-1:] if text[-1:] in "KMGT" else ""
    number = text[: len(text) - len(unit)]
    whole, _, part = number.partition(".")
    if not (whole.isascii() and whole.isdigit() and len(whole) < 10 and (part or "0").isdigit()):
        raise Failure(USAGE, "obs-rate", value=value)
    found = int(float(number) * (1 << UNITS[unit]))
    if not found:
        raise Failure(USAGE, "obs-rate", value=value)
    return found
