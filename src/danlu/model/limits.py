"""Bounds on what comes from outside. Sources: ModelArts' documentation, and Linux itself."""

from __future__ import annotations

NAME_CHARS = 64
DESCRIPTION_CHARS = 256
ENVIRONMENTS = 100
PARAMETERS = 1000
CHANNELS = 100
ANNOTATIONS = 100
NODES = 1024
PRIORITIES = (1, 2, 3)

STRING_BYTES = 131_000
"""Linux hands a program no single argument or variable of more than 128 KiB (MAX_ARG_STRLEN)."""
STRINGS_BYTES = 1_500_000
"""All arguments and variables together; Linux allows a quarter of the stack limit (2 MiB)."""
COMMAND_BYTES = 65_536
IMAGE_REFERENCE_BYTES = 512

TIME_LIMIT_S = 3_600 * 24 * 365
GRACE_S = 3_600
LOG_MIB = 1 << 20
"""The largest limit of a task's log: a tebibyte."""

CODE_BYTES = 128 << 20
CODE_FILES = 4096

BODY_BYTES = 4 << 20
"""The largest JSON body of a request."""
JSON_DEPTH = 32
