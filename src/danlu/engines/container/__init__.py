"""Tasks in containers of podman or Docker, each beside a node agent that outlives the server."""

from __future__ import annotations

from danlu.engines.container.engine import ContainerEngine

__all__ = ["ContainerEngine"]
