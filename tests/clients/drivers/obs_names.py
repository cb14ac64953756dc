"""Names below localhost mean this machine (RFC 6761); not every system's resolver says so."""

import socket

found = socket.getaddrinfo


def resolve():
    """Have every name below localhost mean this machine, in this process."""

    def resolved(host, *rest, **named):
        if isinstance(host, str) and host.endswith(".localhost"):
            host = "localhost"
        return found(host, *rest, **named)

    socket.getaddrinfo = resolved
