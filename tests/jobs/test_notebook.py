"""A notebook with a real JupyterLab on the process engine: what stays, and who survives whom."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, unix_connect

from danlu.model.notebook import lab_token
from tests.faces.cli.house import HANG_S, House, until
from tests.jupyter import jupyter

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

__all__ = ["jupyter"]


@pytest.fixture
def house(tmp_path: Path, jupyter: Path) -> Iterator[House]:
    home = tmp_path / "home"
    home.mkdir()
    made = House(tmp_path / "da ta 数据", home)
    made.env["DANLU_DEFAULT_ENVIRONMENT"] = str(jupyter.parent.parent)
    made.good("up", "--port", "0")
    yield made
    for name in made.good("notebook", "ls", "-q").split():
        made.run("notebook", "rm", name, "--yes")
    made.run("down")


class Instance:
    """What only the server can reach, reached as the server reaches it."""

    def __init__(self, house: House, found: Any) -> None:
        (self.task,) = (house.data / "engine/tasks").glob(f"{found['danlu']['job_id']}-*")
        plan = json.loads((self.task / "plan.json").read_text())
        self.token = lab_token(plan["plan"]["token"])
        self.endpoints = self.task / "work/home/modelarts/endpoints"

    def ask(self, method: str, path: str, body: object = None) -> Any:
        connection = http.client.HTTPConnection("localhost")
        directory = os.open(self.endpoints, os.O_PATH)
        try:
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(HANG_S)
            connection.sock.connect(f"/proc/self/fd/{directory}/lab.sock")
            headers = {"Authorization": f"token {self.token}", "Content-Type": "application/json"}
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            said = answer.read()
            assert answer.status < 300, said
            return json.loads(said) if said else None
        finally:
            connection.close()
            os.close(directory)

    def socket(self, path: str) -> ClientConnection:
        """A WebSocket of Lab's."""
        directory = os.open(self.endpoints, os.O_PATH)
        made = socket.socket(socket.AF_UNIX)
        made.settimeout(HANG_S)
        made.connect(f"/proc/self/fd/{directory}/lab.sock")
        os.close(directory)
        headers = {"Authorization": f"token {self.token}"}
        return unix_connect(uri=f"ws://localhost{path}", sock=made, additional_headers=headers)

    def run(self, kernel: str, code: str) -> None:
        """Have a kernel execute, as Lab has it: through its WebSocket."""
        with self.socket(f"/api/kernels/{kernel}/channels") as channel:
            header = {
                "msg_id": "1",
                "msg_type": "execute_request",
                "session": "s",
                "version": "5.3",
            }
            content = {"code": code, "silent": False, "store_history": True}
            message = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
            channel.send(json.dumps({**message, "channel": "shell", "buffers": []}))
            while json.loads(channel.recv(HANG_S))["msg_type"] != "execute_input":
                pass


def names_in_home(instance: Instance) -> list[str]:
    return [one["name"] for one in instance.ask("GET", "/api/contents")["content"]]


def test_the_home_outlives_a_stop_and_nothing_else_does(house: House) -> None:
    made = house.json("notebook", "create", "mine", "--flavor", "danlu.cpu.1u")
    assert made["status"] == "RUNNING"
    first = Instance(house, made)
    first.ask("PUT", "/api/contents/kept.txt", {"type": "file", "format": "text", "content": "x"})
    assert (house.data / "engine/volumes" / made["id"] / "kept.txt").read_text() == "x"

    house.good("notebook", "stop", "mine")
    assert not first.endpoints.exists()
    again = Instance(house, house.json("notebook", "restart", "mine"))

    assert names_in_home(again) == ["kept.txt"]
    assert again.token != first.token
    assert not first.task.exists() or again.task != first.task
    house.good("notebook", "rm", "mine", "--yes")
    assert not (house.data / "engine/volumes" / made["id"]).exists()


def test_a_killed_server_loses_neither_instance_nor_lease(house: House) -> None:
    """What runs goes on while the server is dead, kernels too, and is the same notebook after."""
    made = house.json("notebook", "create", "mine", "--lease", "1h")
    instance = Instance(house, made)
    kernel = instance.ask("POST", "/api/kernels", {"name": "python3"})["id"]

    os.kill(house.server_pid(), signal.SIGKILL)
    assert [one["id"] for one in instance.ask("GET", "/api/kernels")] == [kernel]
    house.good("up", "--port", "0")
    found = house.json("notebook", "show", "mine")

    assert found["status"] == "RUNNING"
    assert found["danlu"]["job_id"] == made["danlu"]["job_id"]
    assert found["danlu"]["lease_ends_at"] == made["danlu"]["lease_ends_at"]
    assert [one["id"] for one in instance.ask("GET", "/api/kernels")] == [kernel]


def test_the_token_is_nowhere_to_be_read(house: House) -> None:
    made = house.json("notebook", "create", "mine")
    instance = Instance(house, made)

    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert instance.token.encode() not in process.read_bytes()
        except OSError:
            continue
    log = house.good("logs", made["danlu"]["job_id"])
    assert "JupyterLab answers" in log
    for text in (log, json.dumps(house.json("notebook", "show", "mine"))):
        assert instance.token not in text
    assert instance.task.stat().st_mode & 0o077 == 0
    assert instance.endpoints.stat().st_mode & 0o077 == 0


def test_its_use_is_seen_and_its_own_servers_are_none(house: House) -> None:
    """Looking at it is no use of it: the sign of its processes grows older."""
    house.json("notebook", "create", "mine")
    ends = time.monotonic() + HANG_S
    while True:
        idle = house.json("notebook", "show", "mine")["danlu"]["idle"]
        signals = {one["name"]: one for one in idle["signals"]}
        ages = signals.get("processes", {}).get("age_s")
        if ages is not None and ages > 15:
            break
        assert time.monotonic() < ends, idle
        time.sleep(0.5)
    assert idle["stops_at"] == idle["since"] + 3_600_000
    assert (signals["kernels"]["goes_on"], signals["kernels"]["detail"]) == (
        False,
        "0 open, 0 busy",
    )


def test_a_cell_that_sleeps_is_a_use(house: House) -> None:
    """(case 84) (case 86) What the very JupyterLab of the image says of a silent busy kernel."""
    made = house.json("notebook", "create", "mine")
    instance = Instance(house, made)
    body = {"path": "a.ipynb", "type": "notebook", "name": "a", "kernel": {"name": "python3"}}
    session = instance.ask("POST", "/api/sessions", body)
    instance.run(session["kernel"]["id"], "import time; time.sleep(3600)")

    def kernels() -> Any:
        signals = house.json("notebook", "show", "mine")["danlu"]["idle"]["signals"]
        return next((one for one in signals if one["name"] == "kernels"), {"goes_on": False})

    until(lambda: kernels()["goes_on"])
    assert kernels()["detail"] == "1 open, 1 busy"


def read(terminal: ClientConnection, wanted: str) -> str:
    """What appears in a terminal, until `wanted` is there."""
    seen = ""
    ends = time.monotonic() + 4 * HANG_S
    while wanted not in seen:
        kind, *said = json.loads(terminal.recv(max(1.0, ends - time.monotonic())))
        seen += "".join(said) if kind == "stdout" else ""
    return seen


def test_a_terminal_is_warned_and_asks_for_more_time(house: House) -> None:
    """The warning is our own writing: it keeps nothing up. The answer comes from the server."""
    made = house.json("notebook", "create", "mine", "--idle", "150s")
    instance = Instance(house, made)
    name = instance.ask("POST", "/api/terminals")["name"]
    with instance.socket(f"/terminals/websocket/{name}") as terminal:
        warned = read(terminal, "键入 danlu-extend 可续期")
        assert "*** This notebook will be stopped in" in warned
        before = house.json("notebook", "show", "mine")["danlu"]
        time.sleep(12)  # the instance has looked again
        assert house.json("notebook", "show", "mine")["danlu"]["ends_at"] == before["ends_at"]
        terminal.send(json.dumps(["stdin", "danlu-extend; command -v python\r"]))
        seen = read(terminal, "已续期")
        seen += read(terminal, "/bin/python")

    assert "Extended. This notebook will be stopped in 3 min" in seen
    assert str(house.env["DANLU_DEFAULT_ENVIRONMENT"]) in seen
    assert house.json("notebook", "show", "mine")["danlu"]["ends_at"] > before["ends_at"]
    assert "renewed by" in house.good("notebook", "events", "mine")


def test_data_of_the_storage_is_there_at_each_start(house: House) -> None:
    (house.home / "a.txt").write_text("of the storage")
    house.good("obs", "cp", str(house.home / "a.txt"), "obs://danlu/notebook-data/a.txt")
    data = "obs://danlu/notebook-data/=/home/ma-user/data"
    made = house.json("notebook", "create", "mine", "--data-url", data)
    instance = Instance(house, made)
    session = {"path": "a.ipynb", "type": "notebook", "name": "a", "kernel": {"name": "python3"}}
    kernel = instance.ask("POST", "/api/sessions", session)["kernel"]["id"]

    copy = "shutil.copy('/home/ma-user/data/a.txt', '/home/ma-user/work/b.txt')"
    instance.run(kernel, f"import shutil; {copy}")

    kept = house.data / "engine/volumes" / made["id"] / "b.txt"
    until(lambda: kept.exists() and kept.read_text() == "of the storage")


def test_without_jupyterlab_nothing_is_made_and_images_are_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    house = House(tmp_path / "data", home)
    try:
        for words in ((), ("--image", "default")):
            done = house.run("notebook", "create", "none", *words)
            assert done.returncode == 5
            assert b"has no JupyterLab" in done.stderr
            assert b"pytorch-2.13-cpu" in done.stderr
        assert house.good("notebook", "ls", "-q") == ""
    finally:
        house.run("down")
