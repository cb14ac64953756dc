"""serve: the HTTP server in the foreground, from an address to a clean end."""

from __future__ import annotations

import gc
import importlib.util
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

import danlu
from danlu.faces.http.app import create_app
from danlu.faces.http.listen import check, listen, listen_obs, listen_ssh, url
from danlu.faces.http.server import Server
from danlu.faces.http.watchdog import Watchdog
from danlu.faces.lab.app import ByHost
from danlu.faces.obs.app import Gateway
from danlu.faces.obs.door import Door
from danlu.faces.obs.serve import GatewayServer
from danlu.faces.publish import publish
from danlu.faces.ssh import serve as ssh
from danlu.faces.ssh.serve import SshServer
from danlu.model.errors import Refused
from danlu.settings import Settings
from danlu.wiring import READY_FILE, Running, open_platform

log = logging.getLogger(__name__)

KEEP_ALIVE_S = 75
GRACE_S = 3
PING_S = 20.0
"""A WebSocket whose other side answers no ping within this time is over."""
GARBAGE = (50_000, 50, 1000)
SWITCH_S = 0.002
"""The event loop and the writer take turns on the interpreter; 5 ms a turn would be the latency."""


def serve(settings: Settings) -> int:
    """Serve until SIGINT or SIGTERM; tasks go on without us. The process's exit status.

    Raises Refused where the address may not or cannot be listened on, or where another server
    has the data directory; Unavailable after the disk did not keep what was written.
    """
    _log_to_stderr(settings)
    check(settings)
    with listen(settings) as opened, listen_obs(settings, opened) as gateway:
        api = url(settings, opened)
        running = open_platform(settings, api, url(settings, gateway))
        try:
            run(running, opened, api, gateway)
        finally:
            running.close()
    if running.ending.problem is not None:
        raise running.ending.problem
    return 0


def run(
    running: Running, opened: socket.socket, api: str, gateway: socket.socket | None = None
) -> None:
    """Carry jobs and serve requests on `opened` until a signal says stop; OBS' and S3's clients on
    `gateway`.
    """
    sys.setswitchinterval(SWITCH_S)
    # Live jobs are many small objects without cycles: looking through all of them, as Python does
    # by default when their number has grown by a quarter, stops everything for tenths of a second.
    gc.freeze()
    gc.set_threshold(*GARBAGE)
    running.start()
    server = listener(running, api, gateway)
    try:
        server.run(sockets=[opened])
    finally:
        server.state.close()
        # Before the data directory's lock drops: a ready file without a server then means that it
        # died, and clients bring it back; none means that it was stopped.
        for place in ready_files(running.settings):
            place.unlink(missing_ok=True)
        log.info("stopped; tasks that run go on")


def listener(running: Running, api: str, gateway: socket.socket | None = None) -> Listener:
    """The server of an opened platform. It stops when its `should_exit` is set."""
    settings = running.settings
    app = create_app(running)
    state: Server = app.state.server

    def on_ready() -> None:
        for place in ready_files(settings):
            write_ready(place, ready_data(running, api))
        if state.ssh is not None:
            log.info("SSH on port %d", state.ssh.port)
        log.info("ready at %s, OBS at %s", api, running.platform.obs or "none")

    beside = None
    if gateway is not None:
        door = Door(state)
        beside = GatewayServer(_config(Gateway(door), settings), door, gateway)
    front = ByHost(app, state.labs, state.gate)
    config = _config(front, settings, websockets=front.tunnel)
    return Listener(config, state, on_ready, beside, _ssh(state, gateway))


def _ssh(state: Server, gateway: socket.socket | None) -> SshServer | None:
    """The door for SSH, where it is wanted and can be."""
    settings = state.settings
    if gateway is None or settings.ssh_port < -1:
        return None
    if not ssh.installed():
        if settings.ssh_port >= 0:
            raise Refused("ssh-extra", port=settings.ssh_port)
        return None
    return SshServer(state, listen_ssh(settings, gateway))


def _config(app: Any, settings: Settings, websockets: Any = "none") -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="uvloop" if _installed("uvloop") else "asyncio",
        http="httptools" if _installed("httptools") else "h11",
        ws=websockets,
        ws_ping_interval=PING_S,
        ws_ping_timeout=PING_S,
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        # Who a client is, and whether it used TLS, the socket says; nobody's header does.
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
        ssl_certfile=settings.tls_cert or None,
        ssl_keyfile=settings.tls_key or None,
    )


def ready_files(settings: Settings) -> list[Path]:
    """Where clients of the data directory look, and then where whoever started us wants it."""
    usual = settings.data / READY_FILE
    wanted = Path(settings.ready_file) if settings.ready_file else usual
    return [usual] if wanted.absolute() == usual.absolute() else [usual, wanted]


class Listener(uvicorn.Server):
    """uvicorn's server, which says when it is ready and lets followers go before it waits."""

    def __init__(
        self,
        config: uvicorn.Config,
        state: Server,
        on_ready: Callable[[], None],
        gateway: GatewayServer | None = None,
        door: SshServer | None = None,
    ) -> None:
        super().__init__(config)
        self.state = state
        self._on_ready = on_ready
        self._gateway = gateway
        self._door = door
        self._watchdog: Watchdog | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._watchdog = Watchdog()
        if self._gateway is not None:
            await self._gateway.begin()
        if self._door is not None:
            self._door.begin()
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.state.changes.close()
        if self._gateway is not None:
            self._gateway.should_exit = True
        if self._door is not None:
            await self._door.ended()
        await super().shutdown(sockets)
        if self._gateway is not None:
            self._gateway.force_exit = self.force_exit
            await self._gateway.ended()
        if self._watchdog is not None:
            self._watchdog.close()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop once; at the second Ctrl-C at once. Ending as asked is an exit status of 0."""
        del frame
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def ready_data(running: Running, api: str) -> dict[str, str | int]:
    """What a client of this machine needs: where we are, and the first administrator's key."""
    admin, settings = running.admin, running.settings
    return {
        "api": api,
        "obs": running.platform.obs,
        "region": running.workspace.region,
        "project_id": running.workspace.id,
        "access_key": admin.access_key,
        "secret_key": admin.secret.reveal(),
        "user": admin.user.name,
        "domain_id": admin.user.domain_id,
        "ca": str(Path(settings.tls_cert).resolve()) if settings.tls_cert else "",
        "pid": os.getpid(),
        "version": danlu.__version__,
    }


def write_ready(path: Path, data: dict[str, str | int]) -> None:
    """Publish the ready file, for its owner only: whole or not at all."""
    publish(path, json.dumps(data, indent=1).encode() + b"\n")


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _log_to_stderr(settings: Settings) -> None:
    logging.basicConfig(
        level=settings.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    # Malformed requests are the clients' business; uvicorn's own notes are not ours.
    logging.getLogger("uvicorn.error").setLevel("WARNING")
