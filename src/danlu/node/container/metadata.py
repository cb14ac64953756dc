"""The addresses at which clouds hand out a machine's credentials are out of a container's reach,
and so are the networks of other jobs, and what this machine itself offers.

Routes that lead nowhere, and rules, are put into the container's network before its program starts;
without capabilities the program cannot take them away (rtnetlink(7)).
"""

from __future__ import annotations

import ctypes
import errno
import ipaddress
import itertools
import os
import socket
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

ADDRESSES = ("169.254.0.0/16", "100.100.100.200/32", "fd00:ec2::254/128")
"""Link-local (OpenStack's, Huawei's, AWS', Azure's and Google's), Alibaba's, and AWS' over IPv6."""

POOL_BITS = 16

DNS = 53
_NEW_ROUTE, _NEW_RULE = 24, 32
_FLAGS = 1 | 4 | 0x400 | 0x100
"""A request, with an acknowledgement; made if it is not there, replaced if it is."""
_TABLE_MAIN, _PROTOCOL_STATIC, _SCOPE_UNIVERSE, _PROHIBITED = 254, 4, 0, 8
_DESTINATION = 1
_RULE_MAIN, _RULE_PROHIBIT, _RULE_PRIORITY, _RULE_PROTOCOL, _RULE_PORTS = 1, 8, 6, 22, 24
_ALLOWED, _FORBIDDEN = 100, 200
"""Priorities of rules: what may be reached of this machine goes before the rest of it."""
_NETWORK_NAMESPACE, _USER_NAMESPACE = 0x40000000, 0x10000000


def close(pid: int, *, rootless: bool = False) -> str:
    """Close the addresses in the network of a process; what went wrong, or nothing."""

    def shut() -> None:
        for network in (*ADDRESSES, *_neighbours()):
            _prohibit(network)

    return _inside(pid, shut, rootless=rootless)


def close_machine(pid: int, urls: Iterable[str], *, rootless: bool = False) -> str:
    """Close this machine's own addresses in the network of a process, except for names (DNS) and
    for what `urls` lead to; what went wrong, or nothing.
    """
    ours = _own_addresses()
    wanted = {_place(url) for url in urls}

    def shut() -> None:
        # The gateway is an address of ours, which may be newer than the list.
        for address in {*ours, *_gateways()}:
            allowed = {(17, DNS), (6, DNS)} | {
                (6, port) for host, port in wanted if host == address
            }
            for protocol, port in sorted(allowed):
                _rule(address, _RULE_MAIN, protocol, port)
            _rule(address, _RULE_PROHIBIT)

    return _inside(pid, shut, rootless=rootless)


def _inside(pid: int, shut: Callable[[], None], *, rootless: bool) -> str:
    """Do something in the network of a process; what went wrong, or nothing."""
    answer, say = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(answer)
            enter(pid, rootless=rootless)
            shut()
            code = 0
        except OSError as error:
            os.write(say, (error.strerror or str(error)).encode()[:500])
        finally:
            os._exit(code)
    os.close(say)
    said = os.read(answer, 500).decode("utf-8", "replace")
    os.close(answer)
    _, status = os.waitpid(child, 0)
    return said or ("" if status == 0 else "it could not be entered")


def enter(pid: int, *, rootless: bool) -> None:
    """Enter the network of a process; for a process that has no more to do elsewhere. OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    kinds = [("user", _USER_NAMESPACE)] if rootless else []
    for name, flag in (*kinds, ("net", _NETWORK_NAMESPACE)):
        descriptor = os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)
        if libc.setns(descriptor, flag) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


def _neighbours() -> list[str]:
    """Where the runtime takes the networks of other jobs from, as far as that can be told from
    ours: a bridge leads from one to the other, and not every runtime closes that (netavark 1.4 does
    for one network only). What is in our own network has a way of its own, which goes before.
    """
    found = set()
    lines = Path("/proc/self/net/route").read_text("ascii").splitlines()[1:]
    for line in lines:
        _, destination, gateway, _, _, _, _, mask = line.split()[:8]
        own = ipaddress.ip_network(f"{_dotted(destination)}/{_dotted(mask)}", strict=False)
        if gateway == "00000000" and own.is_private and own.prefixlen > POOL_BITS:
            found.add(str(own.supernet(new_prefix=POOL_BITS)))
    return sorted(found)


def _dotted(number: str) -> str:
    return str(ipaddress.IPv4Address(struct.pack("=I", int(number, 16))))


def _prohibit(network: str) -> None:
    parsed = ipaddress.ip_network(network)
    family = socket.AF_INET if parsed.version == 4 else socket.AF_INET6
    address = parsed.network_address.packed
    kind = (_TABLE_MAIN, _PROTOCOL_STATIC, _SCOPE_UNIVERSE, _PROHIBITED)
    body = struct.pack("=8BI", family, parsed.prefixlen, 0, 0, *kind, 0)
    body += _attribute(_DESTINATION, address)
    number = _asked(_NEW_ROUTE, body)
    if number and (family == socket.AF_INET or _speaks_ipv6()):
        raise OSError(number, os.strerror(number))


def _rule(address: str, action: int, protocol: int = 0, port: int = 0) -> None:
    """A rule for what goes to an address, of one protocol and port or of all (fib_rules.h)."""
    parsed = ipaddress.ip_address(address)
    family = socket.AF_INET if parsed.version == 4 else socket.AF_INET6
    priority = _ALLOWED if port else _FORBIDDEN
    table = _TABLE_MAIN if action == _RULE_MAIN else 0
    body = struct.pack("=8BI", family, parsed.max_prefixlen, 0, 0, table, 0, 0, action, 0)
    body += _attribute(_DESTINATION, parsed.packed)
    body += _attribute(_RULE_PRIORITY, struct.pack("=I", priority))
    if port:
        body += _attribute(_RULE_PROTOCOL, bytes([protocol]))
        body += _attribute(_RULE_PORTS, struct.pack("=HH", port, port))
    number = _asked(_NEW_RULE, body)
    if number not in (0, errno.EEXIST) and (family == socket.AF_INET or _speaks_ipv6()):
        raise OSError(number, os.strerror(number))


def _asked(what: int, body: bytes) -> int:
    """Ask the kernel for a change of the network; the number of the error, 0 = it is done."""
    head = struct.pack("=IHHII", 16 + len(body), what, _FLAGS, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
        link.send(head + body)
        said = link.recv(4096)
    return -int(struct.unpack_from("=i", said, 16)[0])


def _place(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    host = parts.hostname or ""
    with suppress(OSError, UnicodeError):
        host = socket.gethostbyname(host) if host else ""
    return host, parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)


def _own_addresses() -> set[str]:
    """The addresses of this machine's network, loopback's aside."""
    lines = Path("/proc/self/net/fib_trie").read_text("ascii").splitlines()
    found = {
        before.split()[-1]
        for before, line in itertools.pairwise(lines)
        if line.split() == ["/32", "host", "LOCAL"]
    }
    with suppress(OSError):  # a kernel without IPv6
        lines = Path("/proc/self/net/if_inet6").read_text("ascii").splitlines()
        found |= {str(ipaddress.IPv6Address(int(line.split()[0], 16))) for line in lines}
    return {one for one in found if not ipaddress.ip_address(one).is_loopback}


def _gateways() -> set[str]:
    lines = Path("/proc/self/net/route").read_text("ascii").splitlines()[1:]
    return {_dotted(line.split()[2]) for line in lines} - {"0.0.0.0"}  # noqa: S104 -- none at all


def _speaks_ipv6() -> bool:
    """Whether the container has an address of IPv6, beside its own loopback."""
    with suppress(OSError):
        lines = Path("/proc/self/net/if_inet6").read_text("ascii").splitlines()
        return any(line.split()[-1:] != ["lo"] for line in lines)
    return False


def _attribute(kind: int, value: bytes) -> bytes:
    size = 4 + len(value)
    return struct.pack("=HH", size, kind) + value + b"\0" * (-size % 4)
