"""Tasks as processes of this machine, each beside a node agent that outlives the server."""

from __future__ import annotations

from danlu.engines.process.engine import ProcessEngine

__all__ = ["ProcessEngine"]
