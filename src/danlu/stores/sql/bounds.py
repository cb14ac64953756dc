"""What may go into a column, the same on both databases.

SQLite would take a NUL in a text and PostgreSQL refuses it; both refuse text that is no UTF-8
and numbers beyond 64 bits, each in its own words. So all of it is looked at here, first.
"""

from __future__ import annotations

from danlu.model.errors import Invalid

LARGEST = (1 << 63) - 1
SMALLEST = -(1 << 63)


def storable(value: str) -> bool:
    """Whether a text column can hold `value`. What it cannot hold cannot be found either."""
    if "\0" in value:
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def words(value: str, field: str) -> str:
    """`value` itself, or Invalid where no text column can hold it."""
    if not storable(value):
        raise Invalid(
            "field-characters",
            field=field,
            value=value,
            found="a NUL character" if "\0" in value else "half of a surrogate pair",
            remedy="remove it",
        )
    return value


def whole(value: int, field: str, least: int = SMALLEST) -> int:
    """`value` itself, or Invalid beyond 64 bits or below `least`."""
    if not least <= value <= LARGEST:
        raise Invalid(
            "field-value",
            field=field,
            value=value,
            expected=f"a whole number from {least} to {LARGEST}",
        )
    return value


def maybe(value: int | None, field: str) -> int | None:
    """The same for an instant that may not have come yet."""
    return None if value is None else whole(value, field)
