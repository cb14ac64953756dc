"""An image as a container image: laid out in layers, built by podman or Docker, kept and moved."""
