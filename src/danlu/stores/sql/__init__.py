"""Records in SQLite or PostgreSQL: one schema, two databases, no ORM."""

from danlu.stores.sql.opening import open_records

__all__ = ["open_records"]
