"""Endpoints and volumes: what notebooks need of an engine."""

from __future__ import annotations

import shlex
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from danlu.engines.memory_script import Script
from danlu.model.errors import Missing
from danlu.model.job import Kind, Volume
from danlu.model.notebook import HOME
from danlu.ports.engine import LAB, Endpoints, Launch, Phase, Ref, Volumes
from tests.containers import Podman
from tests.contract.engines import (
    HANG_S,
    HOUSES,
    ContainerHouse,
    House,
    MemoryHouse,
    ProcessHouse,
    Program,
    finish,
    new_ref,
    running,
    until,
)

ECHO = r"""
import os, socket, sys
place = os.environ["DANLU_ENDPOINTS"]
os.chdir(place)
with open("activity.json", "w") as file:
    file.write('{"at": 7}')
door = socket.socket(socket.AF_UNIX)
door.bind("lab.sock")
door.listen(8)
open("ready", "w").close()
while True:
    caller, _ = door.accept()
    caller.sendall(b"you said " + caller.recv(100))
    caller.close()
"""
BUSY = Program(runs_s=None)


@pytest.fixture(params=HOUSES)
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    made = HOUSES[request.param](tmp_path, request)
    yield made
    made.close()


def notebook(house: House, code: str = ECHO, *volumes: Volume) -> Ref:
    """Launch the task of a notebook that runs `code`."""
    ref = new_ref()
    plan = replace(house.plan(ref, BUSY), kind=Kind.NOTEBOOK, volumes=volumes)
    if isinstance(house, ProcessHouse):
        line = shlex.join(["exec", house.python, "-I", "-c", code]).replace("'exec'", "exec")
        plan = replace(plan, command=line)
    else:
        memory = cast("MemoryHouse", house)
        memory.engine.scripts[plan.job_name] = Script(duration_s=None, ready_s=0.01)
        memory.engine.listeners[LAB] = _echo
        memory.engine.sayings["activity.json"] = {"at": 7}
    house.engine.launch([Launch(ref, "here", plan)])
    return ref


def _echo(other: socket.socket) -> None:
    def answer() -> None:
        with other:
            other.sendall(b"you said " + other.recv(100))

    threading.Thread(target=answer).start()


def endpoints(house: House) -> Endpoints:
    assert isinstance(house.engine, Endpoints)
    return house.engine


def ask(house: House, ref: Ref) -> bytes:
    connection = endpoints(house).endpoint(ref, LAB)
    assert connection.gettimeout() == 0.0
    connection.settimeout(HANG_S)
    with connection:
        connection.sendall(b"hello")
        answer = b""
        while part := connection.recv(100):
            answer += part
    return answer


def test_the_server_reaches_what_a_notebook_listens_on(house: House) -> None:
    ref = notebook(house)
    seen = until(house, ref, lambda seen: seen.ready)

    assert seen.phase is Phase.RUNNING
    assert ask(house, ref) == b"you said hello"
    assert endpoints(house).said(ref, "activity.json") == {"at": 7}


def test_another_server_reaches_it_too(house: House) -> None:
    ref = notebook(house)
    until(house, ref, lambda seen: seen.ready)
    scripted = house.engine if isinstance(house, MemoryHouse) else None

    house.restart()
    if scripted is not None:
        cast("MemoryHouse", house).engine.listeners = scripted.listeners

    until(house, ref, lambda seen: seen.ready)
    assert ask(house, ref) == b"you said hello"


def test_nothing_listens_before_the_start_or_after_the_end(house: House) -> None:
    ref = notebook(house)
    with pytest.raises(Missing):
        endpoints(house).endpoint(new_ref(), LAB)
    until(house, ref, lambda seen: seen.ready)
    with pytest.raises(Missing):
        endpoints(house).endpoint(ref, "other.sock")

    house.engine.stop(ref, 0)
    assert not finish(house, ref).ready

    with pytest.raises(Missing):
        endpoints(house).endpoint(ref, LAB)
    assert endpoints(house).said(ref, "activity.json") is None


def test_a_task_that_is_no_notebook_has_no_endpoints(house: House) -> None:
    ref = new_ref()
    house.engine.launch([Launch(ref, "here", house.plan(ref, BUSY))])

    assert not running(house, ref).ready


LINK = r"""
import os, time
place = os.environ["DANLU_ENDPOINTS"]
os.rmdir(place)
os.symlink("{away}", place)
time.sleep(1000)
"""


def test_a_link_leads_the_server_nowhere(tmp_path: Path) -> None:
    """The program may put anything in the place of its directory: the server does not follow."""
    house = ProcessHouse(tmp_path)
    away = tmp_path / "away"
    away.mkdir()
    (away / "activity.json").write_text('{"secret": 1}')
    own = socket.socket(socket.AF_UNIX)
    own.bind(str(away / LAB))
    own.listen()
    try:
        ref = notebook(house, LINK.format(away=away))
        running(house, ref)
        place = house.directory(ref) / "work/home/modelarts/endpoints"
        end = time.monotonic() + HANG_S
        while not place.is_symlink():
            assert time.monotonic() < end
            time.sleep(0.01)

        with pytest.raises(Missing):
            house.engine.endpoint(ref, LAB)
        assert house.engine.said(ref, "activity.json") is None
    finally:
        own.close()
        house.close()


WRITE = f"open('{HOME}/kept', 'a').write('x'); print(open('{HOME}/kept').read(), flush=True)"


def volumes(house: House) -> Volumes:
    assert isinstance(house.engine, Volumes)
    return house.engine


def test_a_volume_outlives_the_tasks_that_use_it(house: House) -> None:
    keeper = volumes(house)
    keeper.make_volume("home-1")
    keeper.make_volume("home-1")
    for times in (1, 2):
        ref = notebook(house, WRITE, Volume("home-1", HOME))
        if isinstance(house, ProcessHouse):
            finish(house, ref)
            assert house.engine.logs(ref, 0).data == b"x" * times + b"\n"
        house.engine.remove(ref)

    assert keeper.volume_bytes("home-1") is not None
    keeper.remove_volume("home-1")
    keeper.remove_volume("home-1")

    assert keeper.volume_bytes("home-1") is None


def test_a_volume_without_a_view_lies_behind_a_link(bare_house: ProcessHouse) -> None:
    bare_house.engine.make_volume("home-2")
    code = WRITE.replace(HOME, "work")
    ref = new_ref()
    options: dict[str, Any] = {"kind": Kind.NOTEBOOK, "volumes": (Volume("home-2", HOME),)}
    line = shlex.join([bare_house.python, "-I", "-c", code])
    plan = replace(bare_house.plan(ref, BUSY), command=line, **options)
    bare_house.engine.launch([Launch(ref, "here", plan)])
    finish(bare_house, ref)

    assert bare_house.engine.logs(ref, 0).data == b"x\n"
    used = bare_house.engine.volume_bytes("home-2")
    assert used is not None
    assert used >= 512


def test_the_program_of_an_instance_runs_with_whatever_python_an_image_has(
    tmp_path: Path, podman: Podman
) -> None:
    """Only the standard library is needed; what is missing is said."""
    house = ContainerHouse(tmp_path, podman)
    try:
        ref = new_ref()
        program = 'exec "$MA_SCRIPT_INTERPRETER" -m danlu_notebook'
        plan = replace(
            house.plan(ref, BUSY),
            command=program,
            kind=Kind.NOTEBOOK,
        )
        house.engine.launch([Launch(ref, "here", plan)])
        seen = finish(house, ref)

        assert seen.exit is not None
        assert seen.exit.exit_code == 78
        assert b"has no JupyterLab" in house.engine.logs(ref, 0).data
    finally:
        house.close()
