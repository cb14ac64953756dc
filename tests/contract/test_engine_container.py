"""The container engine with real podman: whatever is killed, nothing is lost, nothing is left."""

from __future__ import annotations

import io
import secrets
import signal
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from danlu.model.job import EngineChoice
from danlu.model.reason import ReasonCode
from danlu.model.url import ObjectUrl
from danlu.node import identity
from danlu.node.container.api import RuntimeAway
from danlu.ports import task_directory as files
from danlu.ports.engine import Launch, Phase, Ref
from danlu.stores.folder import FolderStore
from tests.containers import Podman
from tests.contract.engines import (
    HANG_S,
    ContainerHouse,
    Program,
    finish,
    launch,
    new_ref,
    running,
    said,
    see,
    until,
    whole_log,
)
from tests.contract.tasks import FOREVER, agent_of, keys, kill, read, shim_of, start, wait

TICKS = """
    import os, sys, time
    for number in range(300):
        print("tick", number, flush=True)
        time.sleep(0.01)
    sys.exit(7)
"""
HELD = TICKS.replace(
    "sys.exit", "while not os.path.exists('/cache/end'): time.sleep(0.01)\n    sys.exit"
)
"""Does not end before a test is done with it, however long that takes here."""
TICKED = b"".join(b"tick %d\n" % number for number in range(300))


@pytest.fixture
def house(tmp_path: Path, podman: Podman) -> Iterator[ContainerHouse]:
    made = ContainerHouse(tmp_path, podman)
    yield made
    if not podman.answers():
        podman.start()
    made.close()


def container(house: ContainerHouse, ref: Ref) -> str:
    name: str = read(house, ref, files.PLAN)["container"]["name"]
    return name


def let_end(house: ContainerHouse, ref: Ref) -> None:
    (house.directory(ref) / files.WORK / "cache" / "end").touch()


def containers(house: ContainerHouse) -> str:
    """All of them, of this engine's and of others' tests, by name."""
    return house.podman.run("ps", "--all", "--format", "{{.Names}}")


def ended(house: ContainerHouse, ref: Ref, code: int) -> None:
    """It has ended by itself with this code, and all of what it printed is there."""
    seen = finish(house, ref)
    assert seen.exit is not None
    assert (seen.exit.exit_code, seen.exit.problem, seen.problem) == (code, None, None)


# ---------------------------------------------------------------- deaths


def test_the_death_of_an_agent_costs_nothing(house: ContainerHouse) -> None:
    """(fault 2): SIGKILL to three agents in turn while the program prints."""
    ref = start(house, HELD)
    for word in (b"tick 20\n", b"tick 100\n", b"tick 180\n"):
        said(house, ref, word)
        victim = agent_of(house, ref)
        kill(victim)
        while agent_of(house, ref) == victim:
            see(house, ref)  # another one begins
            time.sleep(0.01)
    let_end(house, ref)
    ended(house, ref, 7)
    assert whole_log(house, ref) == TICKED


def test_the_runtime_may_be_killed_and_started_while_a_program_runs(house: ContainerHouse) -> None:
    """(fault 47): SIGKILL to podman's service, and another one."""
    ref = start(house, TICKS)
    said(house, ref, b"tick 10\n")
    house.podman.kill()
    said(house, ref, b"tick 60\n")
    house.podman.start()
    ended(house, ref, 7)
    assert whole_log(house, ref) == TICKED


def test_a_program_may_end_while_the_runtime_is_away(house: ContainerHouse) -> None:
    """(fault 47): podman's service is killed, and started when all is over."""
    ref = start(house, TICKS)
    said(house, ref, b"tick 10\n")
    house.podman.kill()
    ended(house, ref, 7)
    assert whole_log(house, ref) == TICKED
    house.podman.start()
    name = container(house, ref)
    house.engine.remove(ref)
    assert name not in containers(house)


def test_server_agent_and_runtime_may_die_together(house: ContainerHouse) -> None:
    """(faults 1, 4, 47): the program goes on and ends while nobody looks; then all come back."""
    ref = start(house, HELD)
    said(house, ref, b"tick 10\n")
    house.engine.close()
    kill(agent_of(house, ref))
    house.podman.kill()
    let_end(house, ref)
    ended_file = house.directory(ref) / files.BOX / "said" / "ended"
    wait(ended_file.exists)
    house.podman.start()
    house._open()
    ended(house, ref, 7)
    assert whole_log(house, ref) == TICKED


def test_an_agent_that_dies_before_the_program_starts_is_replaced(house: ContainerHouse) -> None:
    """(faults 2, 6): killed at many moments of staging and starting; the program runs once."""
    for pause_s in (0.0, 0.05, 0.15, 0.3, 0.6):
        ref = launch(house, Program(out=b"once\n", exit_code=3))
        agent = agent_of(house, ref)
        time.sleep(pause_s)
        identity.send(agent, signal.SIGKILL)
        ended(house, ref, 3)
        assert whole_log(house, ref) == b"once\n"


@pytest.mark.parametrize("how", [("rm", "--force", "--time=0"), ("kill", "--signal=KILL")])
def test_a_container_that_somebody_ends_is_lost(house: ContainerHouse, how: list[str]) -> None:
    """(fault 48): `podman rm --force` or `podman kill`; it is no fault of the program's."""
    ref = start(house, FOREVER)
    said(house, ref, b"up")
    house.podman.run(*how, container(house, ref))
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.problem is ReasonCode.AGENT_LOST
    assert not seen.exit.out_of_memory


# ---------------------------------------------------------------- a runtime that is away


def test_a_launch_waits_for_a_runtime_that_is_away(house: ContainerHouse) -> None:
    """That nobody answers proves nothing: the task says what it waits for, and begins later."""
    assert house.engine.powers.images  # it has been asked once
    house.podman.kill()
    ref = launch(house, Program(out=b"here\n"))
    seen = until(house, ref, lambda seen: "runtime-away" in keys(seen))
    assert seen.phase is Phase.LAUNCHING
    house.podman.start()
    ended(house, ref, 0)
    assert whole_log(house, ref) == b"here\n"
    assert "runtime-back" in keys(see(house, ref))


def test_a_task_that_waits_for_its_runtime_can_be_stopped(house: ContainerHouse) -> None:
    """(case 29)"""
    assert house.engine.powers.images
    house.podman.kill()
    ref = launch(house, Program())
    house.engine.stop(ref, HANG_S)
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.signal == "SIGTERM"
    with pytest.raises(RuntimeAway):
        house.engine._api.call("GET", "/version")  # type: ignore[attr-defined] # the house's own


# ---------------------------------------------------------------- names


def test_a_container_of_somebody_else_is_left_alone(house: ContainerHouse) -> None:
    """(case 33): the name is taken by a container without our token."""
    ref = new_ref()
    name = house.engine._prefix + ref.name  # type: ignore[attr-defined] # as above
    image = house.podman.image
    house.podman.run("run", "--detach", "--name", name, image, "sleep", "600")
    try:
        house.engine.launch([Launch(ref, "here", house.plan(ref, Program()))])
        seen = finish(house, ref)
        assert seen.exit is not None
        assert seen.exit.problem is ReasonCode.CONTAINER_FAILED
        state = house.podman.run("inspect", "--format", "{{.State.Status}}", name)
        assert state.strip() == "running"
    finally:
        house.podman.run("rm", "--force", "--time=0", name)
    house.engine.remove(ref)


def test_what_belongs_to_no_task_is_swept(house: ContainerHouse) -> None:
    """(case 23): a container whose task is gone, as after a call that was under way."""
    ref = launch(house, Program(runs_s=None, out=b"up\n"))
    said(house, ref, b"up")
    name = container(house, ref)
    stray = f"{house.engine._prefix}stray-1-0"  # type: ignore[attr-defined] # as above
    image = house.podman.image
    facts = str(house.root / "engine" / "images")
    labels = ["--label", f"io.danlu.engine={facts}", "--label", f"io.danlu.task={stray}"]
    house.podman.run("create", "--name", stray, *labels, image, "true")
    house.restart()
    wait(lambda: stray not in containers(house))
    assert name in containers(house)
    assert see(house, ref).phase is Phase.RUNNING


def test_two_servers_on_one_runtime_do_not_meet(
    house: ContainerHouse, tmp_path: Path, podman: Podman
) -> None:
    other = ContainerHouse(tmp_path / "other", podman)
    try:
        ref = new_ref()
        for one, code in ((house, 3), (other, 4)):
            plan = one.plan(ref, Program(exit_code=code))
            one.engine.launch([Launch(ref, "here", plan)])
        ended(house, ref, 3)
        ended(other, ref, 4)
    finally:
        other.close()


def test_a_removed_task_leaves_nothing(house: ContainerHouse) -> None:
    ref = start(house, FOREVER)
    said(house, ref, b"up")
    name = container(house, ref)
    init = shim_of(house, ref)
    assert identity.alive(init)
    directory = house.directory(ref)
    house.engine.remove(ref)
    assert name not in containers(house)
    assert not identity.alive(init)
    assert not directory.exists()


def test_a_further_attempt_begins_where_nothing_of_the_one_before_lives(
    house: ContainerHouse,
) -> None:
    """(case 23): its agent is gone, its container runs."""
    ref = start(house, FOREVER)
    said(house, ref, b"up")
    init = shim_of(house, ref)
    house.engine.close()
    kill(agent_of(house, ref))
    house._open()
    again = replace(ref, attempt=2, token=secrets.token_hex(16))
    house.engine.launch([Launch(again, "here", house.plan(again, Program(exit_code=5)))])
    assert not identity.alive(init)
    ended(house, again, 5)


# ---------------------------------------------------------------- images


def test_an_image_that_cannot_be_had_is_told(house: ContainerHouse) -> None:
    """(fault 51): no such registry."""
    choice = EngineChoice(image_url="127.0.0.1:9/no/such:1")
    seen = finish(house, launch(house, Program(), engine=choice))
    assert seen.exit is not None
    assert seen.exit.problem is ReasonCode.IMAGE_FAILED
    assert "image-pulling" in keys(seen)
    assert seen.exit.detail["image"] == choice.image_url


def test_an_image_without_a_shell_is_told(house: ContainerHouse, tmp_path: Path) -> None:
    import tarfile

    archive = tmp_path / "bare.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(__file__, "program")
    house.podman.run("import", str(archive), "localhost/danlu-test-bare:1")
    choice = EngineChoice(image_url="localhost/danlu-test-bare:1")
    seen = finish(house, launch(house, Program(), engine=choice))
    assert seen.exit is not None
    assert seen.exit.problem is ReasonCode.IMAGE_FAILED
    assert "/bin/sh" in str(seen.exit.detail["detail"])


def test_a_program_that_is_not_in_the_image_is_told(house: ContainerHouse) -> None:
    ref = new_ref()
    plan = replace(house.plan(ref, Program()), command="true", working_dir="/no/such/place")
    house.engine.launch([Launch(ref, "here", plan)])
    seen = finish(house, ref)
    assert seen.exit is not None
    assert (seen.exit.problem, seen.exit.exit_code) == (ReasonCode.BOOT_FAILED, 127)
    assert "/no/such/place" in str(seen.exit.detail["detail"])
    assert seen.started_at is None


def test_a_home_that_the_image_has_is_kept(house: ContainerHouse) -> None:
    """ModelArts' preset images have their Python in /home/ma-user."""
    podman, image = house.podman, "localhost/danlu-test-home:1"
    podman.run("rm", "--force", "--ignore", "danlu-test-home")
    make = "mkdir -p /home/ma-user/anaconda && echo own >/home/ma-user/anaconda/file"
    podman.run("run", "--name", "danlu-test-home", podman.image, "sh", "-c", make)
    podman.run("commit", "danlu-test-home", image)
    podman.run("rm", "danlu-test-home")
    ref = start(
        house,
        """
        print(open("/home/ma-user/anaconda/file").read(), end="")
        for place in ("modelarts", "work"):
            open(f"/home/ma-user/{place}/mine", "w").close()
        """,
        engine=EngineChoice(image_url=image),
    )
    ended(house, ref, 0)
    assert whole_log(house, ref) == b"own\n"


def test_a_paused_look_never_costs_a_running_task(house: ContainerHouse) -> None:
    """An agent that was stopped for a while finds its container as it left it."""
    ref = start(house, HELD)
    said(house, ref, b"tick 10\n")
    agent = agent_of(house, ref)
    identity.send(agent, signal.SIGSTOP)
    time.sleep(0.5)
    identity.send(agent, signal.SIGCONT)
    running(house, ref)
    let_end(house, ref)
    ended(house, ref, 7)
    assert whole_log(house, ref) == TICKED


def test_what_the_program_runs_on_is_on_record(house: ContainerHouse) -> None:
    seen = finish(house, start(house, "print(1)"))
    (note,) = [note for note in seen.notes if note.key == "task-runs-on"]
    assert str(note.params["python"]).startswith("3.")


# ---------------------------------------------------------------- requirements

CODE = ObjectUrl("danlu", "code/")
USES = """
import os, sys, tiny
print(tiny.SAID, sys.prefix, os.environ["MA_SCRIPT_INTERPRETER"] == sys.executable)
"""


def wheel() -> bytes:
    """A package that needs nothing."""
    made = io.BytesIO()
    info = "tiny-1.0.dist-info"
    tag = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("tiny.py", "SAID = 'tiny'\n")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", tag)
        archive.writestr(f"{info}/RECORD", "")
    return made.getvalue()


def with_code(house: ContainerHouse, requirements: str, script: str) -> Ref:
    """A job with a boot file and requirements, and a wheel beside them."""
    store = FolderStore(house.objects)
    store.create_bucket("danlu")
    store.put("danlu", "code/tiny-1.0-py3-none-any.whl", wheel())
    store.put("danlu", "code/pip-requirements.txt", requirements.encode())
    store.put("danlu", "code/train.py", script.encode())
    ref = new_ref()
    plan = replace(house.plan(ref, Program()), code=CODE, command="", boot_file="train.py")
    house.engine.launch([Launch(ref, "here", plan)])
    return ref


def test_requirements_are_installed_in_the_container(house: ContainerHouse) -> None:
    ref = with_code(house, "./tiny-1.0-py3-none-any.whl\n", USES)
    seen = finish(house, ref)
    log = whole_log(house, ref)
    assert seen.exit is not None
    assert seen.exit.exit_code == 0, (seen, log)
    assert b"\ntiny /home/ma-user/modelarts/environment True\n" in log, log
    assert "requirements-installed" in keys(seen)


def test_requirements_that_cannot_be_had_are_told(house: ContainerHouse) -> None:
    ref = with_code(house, "./not-there-1.0-py3-none-any.whl\n", "print('never')\n")
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.problem is ReasonCode.REQUIREMENTS_FAILED
    assert "not-there" in str(seen.exit.detail["detail"])
    assert b"never" not in whole_log(house, ref)
