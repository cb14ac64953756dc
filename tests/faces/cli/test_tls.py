"""TLS: whom the client believes."""

from __future__ import annotations

import datetime as dt
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from danlu.faces.cli.http import Connection, Unreachable
from tests.faces.cli.house import House
from tests.faces.cli.scripted import reply


def certificate(folder: Path, name: str, *, address: str = "") -> tuple[Path, Path]:
    """A self-signed certificate and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    names: list[x509.GeneralName] = [x509.DNSName(name)]
    if address:
        names.append(x509.IPAddress(ipaddress.ip_address(address)))
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    folder.mkdir(exist_ok=True)
    cert, secret = folder / f"{name}.pem", folder / f"{name}.key"
    cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return cert, secret


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """The port of a TLS server, and its certificate: good for its address and for lab.example."""
    cert, key = certificate(tmp_path, "lab.example", address="127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    door = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                taken, _ = door.accept()
                with context.wrap_socket(taken, server_side=True) as secured:
                    if secured.recv(4096):
                        secured.sendall(reply(b"hello"))
            except ssl.SSLError:
                continue
            except OSError:
                return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield door.getsockname()[1], cert
    door.shutdown(socket.SHUT_RDWR)
    door.close()
    thread.join(10)


def asked(port: int, host: str = "127.0.0.1", **trust: str) -> bytes:
    with closing(Connection(host, port, tls=True, **trust)) as door:
        return door.request("GET", "/", timeout_s=10).read()


def test_a_certificate_of_nobody_is_refused(served: tuple[int, Path]) -> None:
    with pytest.raises(Unreachable, match=r"(?i)certificate"):
        asked(served[0])


def test_an_authority_of_our_own_is_believed_for_its_names_only(served: tuple[int, Path]) -> None:
    port, cert = served
    assert asked(port, ca=str(cert)) == b"hello"
    with pytest.raises(Unreachable, match=r"(?i)certificate"):
        asked(port, "localhost", ca=str(cert))


def test_a_pinned_certificate_is_believed_under_any_name_and_no_other_is(
    served: tuple[int, Path], tmp_path: Path
) -> None:
    port, cert = served
    assert asked(port, "localhost", pin=str(cert)) == b"hello"
    other, _ = certificate(tmp_path / "other", "lab.example", address="127.0.0.1")
    with pytest.raises(Unreachable, match="another certificate"):
        asked(port, pin=str(other))
    (tmp_path / "broken.pem").write_text("nonsense")
    for file in ("broken.pem", "missing.pem"):
        with pytest.raises(Unreachable):
            asked(port, pin=str(tmp_path / file))


def test_a_local_server_with_tls_is_found_and_believed(tmp_path: Path) -> None:
    """Its certificate bears another name than the loopback address under which we reach it."""
    cert, key = certificate(tmp_path, "lab.example")
    home = tmp_path / "home"
    home.mkdir()
    house = House(tmp_path / "data", home)
    house.data.mkdir(mode=0o700)
    (house.data / "danlu.toml").write_text(f"tls_cert = '{cert}'\ntls_key = '{key}'\nport = 0\n")
    try:
        assert house.json("up")["api"].startswith("https://127.0.0.1:")
        assert house.good("run", house.script("print('over tls')")) == "over tls\n"
    finally:
        house.good("down")
