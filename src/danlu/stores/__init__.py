"""Where records and objects live."""
