"""Programs in containers: what the agent needs of podman or Docker, over their common REST API."""
