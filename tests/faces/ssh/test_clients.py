"""OpenSSH's own clients through the door, both ways: by ProxyJump and by the login."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faces.ssh.world import HANG_S, Instance, World, me, quoted, until

pytestmark = pytest.mark.timeout(180)

WAYS = ["nb", "nb@door"]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_command_has_its_output_and_exit_code(
    world: World, instance: Instance, key: Path, way: str
) -> None:
    done = world.ssh(key, way, "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, b"out\n", b"err\n")
    assert world.ssh(key, way, "true").returncode == 0


def test_the_environment_and_the_directory_are_the_jobs(
    world: World, instance: Instance, key: Path, way: str
) -> None:
    said = world.ssh(key, way, 'printf "%s|" "$PATH" "$MA_NUM_GPUS" "$ODD" "$PWD" "$HOME"')
    path, gpus, odd, cwd, home, _ = said.stdout.decode().split("|")
    assert path.startswith("/opt/of the job/bin:")
    assert (gpus, odd, home) == ("0", 'it\'s "odd" $HOME\nand more', "/nowhere")
    assert cwd == str(instance.home)


def test_a_script_comes_through_stdin_with_the_same_environment(
    world: World, instance: Instance, key: Path, way: str
) -> None:
    script = b'echo "$PATH|$MA_NUM_GPUS|$PWD"\nread line <<< x\nexit 3\n'
    for words in ([], ["bash"], ["sh"]):
        sent = script if words != ["sh"] else script.replace(b"read line <<< x\n", b"")
        done = world.ssh(key, "-T", way, *words, stdin=sent)
        assert done.returncode == 3, done.stderr
        path, gpus, cwd = done.stdout.decode().strip().split("|")
        assert path.startswith("/opt/of the job/bin:"), words
        assert (gpus, cwd) == ("0", str(instance.home))


def test_a_login_on_a_terminal_has_it_too(
    world: World, instance: Instance, key: Path, way: str
) -> None:
    typed = b'stty size\necho "<$TERM>" "<${PATH%%:*}>" "<$MA_NUM_GPUS>"\nexit 5\n'
    done = subprocess.run(
        world.command(key, "-tt", way),
        input=typed,
        env={**os.environ, "TERM": "xterm-256color"},
        capture_output=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 5, done
    assert b"<xterm-256color> </opt/of the job/bin> <0>" in done.stdout


def test_files_go_and_come(
    world: World, instance: Instance, key: Path, way: str, tmp_path: Path
) -> None:
    data = os.urandom(3 << 20)
    here = tmp_path / "here.bin"
    here.write_bytes(data)
    for legacy in ([], ["-O"]):
        name = f"there{len(legacy)}.bin"
        sent = world.ssh(key, *legacy, str(here), f"{way}:{name}", program="scp")
        assert sent.returncode == 0, sent.stderr
        assert (instance.home / name).read_bytes() == data
        back = tmp_path / f"back-{len(legacy)}"
        assert world.ssh(key, *legacy, f"{way}:{name}", str(back), program="scp").returncode == 0
        assert back.read_bytes() == data
    listed = world.ssh(key, "-b", "-", way, stdin=b"pwd\nls\n", program="sftp")
    assert listed.returncode == 0, listed.stderr
    assert b"there0.bin" in listed.stdout
    assert str(instance.home).encode() in listed.stdout


def test_rsync(world: World, instance: Instance, key: Path, way: str, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    for number in range(50):
        (tree / "sub" / f"f{number}").write_bytes(os.urandom(1000))
    shell = quoted("ssh", "-F", world.config(key, *world.instances))
    for there, back in ((f"{way}:tree", False), (f"{way}:tree/", True)):
        ends = [there, f"{tmp_path}/back/"] if back else [f"{tree}/", there]
        done = subprocess.run(
            ["rsync", "-a", "-e", shell, *ends], capture_output=True, timeout=HANG_S, check=False
        )
        assert done.returncode == 0, done.stderr
    assert sorted(one.name for one in (tmp_path / "back" / "sub").iterdir()) == sorted(
        f"f{number}" for number in range(50)
    )


def test_a_large_stream_arrives_whole(
    world: World, instance: Instance, key: Path, way: str
) -> None:
    size = 64 << 20
    digest = hashlib.sha256()
    read = 0
    command = f"head -c {size} /dev/urandom | tee >(sha256sum >sum)"
    with subprocess.Popen(world.command(key, way, command), stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        while chunk := running.stdout.read(1 << 20):
            digest.update(chunk)
            read += len(chunk)
    assert (running.returncode, read) == (0, size)
    until(lambda: (instance.home / "sum").read_text("ascii").strip())
    assert (instance.home / "sum").read_text("ascii").split()[0] == digest.hexdigest()


@pytest.mark.parametrize("flag", ["-L", "-D"])
def test_ports_are_forwarded(
    world: World, instance: Instance, key: Path, way: str, flag: str
) -> None:
    with echoing() as port:
        local = free_port()
        spec = f"127.0.0.1:{local}:127.0.0.1:{port}" if flag == "-L" else f"127.0.0.1:{local}"
        words = ("-N", "-o", "ExitOnForwardFailure=yes", flag, spec, way)
        tunnel = subprocess.Popen(world.command(key, *words))
        try:
            until(lambda: tunnel.poll() is not None or listens(local))
            # An editor opens many at a time.
            clients = [socket.create_connection(("127.0.0.1", local), HANG_S) for _ in range(30)]
            for number, client in enumerate(clients):
                if flag == "-D":
                    socks(client, port)
                client.sendall(b"to %d" % number)
            for number, client in enumerate(clients):
                assert client.recv(100) == b"TO %d" % number
                client.close()
        finally:
            tunnel.terminate()
            tunnel.wait(HANG_S)


@contextlib.contextmanager
def echoing() -> Iterator[int]:
    """The port of a server that says everything again, louder."""

    class Loud(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            while data := self.request.recv(1000):
                self.request.sendall(data.upper())

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Loud) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield int(server.server_address[1])
        server.shutdown()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        return int(opened.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def socks(client: socket.socket, port: int) -> None:
    """Ask a SOCKS5 proxy (RFC 1928) for a port of its own machine."""
    client.sendall(b"\x05\x01\x00")
    assert client.recv(2) == b"\x05\x00"
    client.sendall(b"\x05\x01\x00\x01" + socket.inet_aton("127.0.0.1") + port.to_bytes(2, "big"))
    assert client.recv(10)[1] == 0


def test_a_server_behind_the_instance_is_reached_from_it(
    world: World, instance: Instance, key: Path
) -> None:
    """A remote forward, as agents of editors use: `-R`."""
    here = socket.create_server(("127.0.0.1", 0))
    here.settimeout(HANG_S)
    port = here.getsockname()[1]
    remote = free_port()
    reach = f"exec 3<>/dev/tcp/127.0.0.1/{remote}; echo hello >&3; cat <&3"
    words = ("-R", f"127.0.0.1:{remote}:127.0.0.1:{port}", "nb", reach)
    with subprocess.Popen(world.command(key, *words), stdout=subprocess.PIPE) as running:
        served, _ = here.accept()
        assert served.recv(100) == b"hello\n"
        served.sendall(b"answer")
        served.close()
        assert running.stdout is not None
        assert running.stdout.read() == b"answer"
    here.close()


def test_an_instance_is_who_it_was_after_a_restart(
    world: World, instance: Instance, key: Path
) -> None:
    """The host key stays with the home: no warning of a changed host (case 78)."""
    before = instance.host_key()
    instance.stop()
    again = Instance(instance.at, {"PATH": os.environ["PATH"], "SHELL": "/bin/bash"})
    try:
        assert again.host_key() == before
        assert world.ssh(key, "nb", "echo again").stdout == b"again\n"
    finally:
        again.stop()


def test_sessions_leave_no_zombies(world: World, instance: Instance, key: Path, way: str) -> None:
    """(case 24)"""
    for _ in range(10):
        assert world.ssh(key, way, "true").returncode == 0

    def defunct() -> list[str]:
        listed = subprocess.run(
            ["ps", "-o", "stat=", "--ppid", str(instance.process.pid)],
            capture_output=True,
            check=False,
            timeout=HANG_S,
        )
        return [line for line in listed.stdout.decode().split() if line.startswith("Z")]

    until(lambda: not defunct())
    assert me() in instance.log()
