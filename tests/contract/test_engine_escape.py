"""What a program of the process engine cannot do, tried by one that tries; and that it could do all
of it if nothing kept it from it, for otherwise these tests would prove nothing.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from danlu.model.job import Access, Input
from danlu.model.reason import ReasonCode
from danlu.model.url import LocalUrl
from danlu.node import landlock
from danlu.ports.task_directory import Isolation
from tests.contract.engines import ProcessHouse, finish, new_ref, said, whole_log
from tests.contract.escapes import TEXT
from tests.contract.tasks import planned, start
from tests.services import ROOT, offered, require

SECRET = """
    import os, time
    with open(os.environ["MA_CACHE_DIR"] + "/secret", "w") as file:
        file.write("secret")
    print("up", flush=True)
    time.sleep(120)
"""
VICTIM = """
import ctypes, time
data = ctypes.create_string_buffer(b"secret")
print(ctypes.addressof(data), flush=True)
time.sleep(300)
"""


@dataclass
class Scene:
    """What must not be reached, and an engine whose tasks try to."""

    house: ProcessHouse
    aim: dict[str, object]

    def escape(self) -> dict[str, str]:
        """Run the program; what came of each attempt."""
        ref = new_ref()
        aim = {**self.aim, "own": str(self.house.directory(ref))}
        order = planned(self.house, ref, TEXT, environments={"ESCAPE": json.dumps(aim)})
        self.house.engine.launch([order])
        finish(self.house, ref)
        found: dict[str, str] = json.loads(whole_log(self.house, ref))
        for name, path in (
            ("write to another task", f"{aim['other']}/work/cache/mine"),
            ("write its own exit record", f"{aim['own']}/exit.planted"),
            ("write into the home", f"{aim['home']}/.bashrc"),
            ("write elsewhere", f"{aim['data']}/planted"),
        ):
            if found[name] == "done" and not Path(path).exists():
                found[name] = "written to a place of its own"
        return found


WAYS = {
    "all": Isolation(),
    "rules only": Isolation(namespaces=False),
    "bare": Isolation(wanted=False),
}


@pytest.fixture(params=WAYS)
def scene(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Scene]:
    data, home = tmp_path / "data", tmp_path / "home"
    for file in (
        data / "danlu.sqlite",
        home / ".ssh" / "id_ed25519",
        home / ".aws" / "credentials",
        home / ".config" / "tool" / "token",
        home / ".netrc",
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("secret")
    monkeypatch.setenv("HOME", str(home))
    isolation = replace(WAYS[request.param], hidden=(str(data),))
    house = ProcessHouse(tmp_path, isolation=isolation)
    victim = subprocess.Popen([sys.executable, "-c", VICTIM], stdout=subprocess.PIPE)
    door = socket.socket(socket.AF_UNIX)
    name = f"danlu-{secrets.token_hex(8)}"
    door.bind(f"\0{name}")
    door.listen()
    assert victim.stdout is not None
    other = start(house, SECRET)
    said(house, other, b"up")
    freezer = Path("/sys/fs/cgroup/freezer")
    aim = {
        "records": str(data / "danlu.sqlite"),
        "data": str(data),
        "home": str(home),
        "other": str(house.directory(other)),
        "server": os.getpid(),
        "victim": victim.pid,
        "address": int(victim.stdout.readline()),
        "socket": name,
        "group": str(freezer if freezer.exists() else "/sys/fs/cgroup"),
        "name": platform.node(),
    }
    yield Scene(house, aim)
    victim.kill()
    victim.communicate()
    door.close()
    house.close()
    Path("/etc/danlu-escape").unlink(missing_ok=True)


def test_nothing_is_reached_that_is_not_the_tasks_own(
    scene: Scene, request: pytest.FixtureRequest
) -> None:
    """(threats: host)"""
    offered(landlock.abi() >= landlock.SCOPES_SINCE, "Landlock with scopes (Linux 6.12)")
    found = scene.escape()
    isolated = "bare" not in request.node.callspec.id
    done = {name for name, came in found.items() if came == "done"}
    assert done == (set() if isolated else set(found)), found


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "LD_LIBRARY_PATH", "CURL_CA_BUNDLE"])
def test_a_jobs_own_variable_opens_nothing(tmp_path: Path, name: str) -> None:
    """Of the server's own variables those lead to files that programs need; anybody may submit."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "danlu.sqlite").write_text("secret")
    house = ProcessHouse(tmp_path, isolation=Isolation(hidden=(str(data),)))
    try:
        place = str(data if name == "LD_LIBRARY_PATH" else data / "danlu.sqlite")
        code = f"print('began', flush=True); print(open({str(data / 'danlu.sqlite')!r}).read())"
        ref = start(house, code, environments={name: place})
        finish(house, ref)
        log = whole_log(house, ref)
        assert log.startswith(b"began\n")
        assert b"secret" not in log
    finally:
        house.close()


def test_a_task_that_must_be_isolated_is_not_started_otherwise(bare_house: ProcessHouse) -> None:
    ref = start(bare_house, "print('ran')", require_isolation=True)
    seen = finish(bare_house, ref)
    assert seen.exit is not None
    assert seen.exit.problem is ReasonCode.NOT_ISOLATED
    assert "namespaces" in str(seen.exit.detail["missing"])
    assert "landlock" in str(seen.exit.detail["missing"])
    assert whole_log(bare_house, ref) == b""
    assert seen.started_at is None


def test_a_task_that_must_be_isolated_runs_where_it_is(house: ProcessHouse) -> None:
    offered(not house.engine.powers.unenforced, "all that isolates tasks (root)")
    ref = start(house, "print('ran')", require_isolation=True)
    finish(house, ref)
    assert whole_log(house, ref) == b"ran\n"


@pytest.mark.parametrize("isolation", [Isolation(), Isolation(namespaces=False)])
def test_an_input_that_has_become_a_link_to_the_servers_data_is_refused(
    tmp_path: Path, isolation: Isolation
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "danlu.sqlite").write_text("secret")
    (tmp_path / "mine").symlink_to(data)
    ours = replace(isolation, hidden=(str(data),), closed=(str(data),))
    house = ProcessHouse(tmp_path, isolation=ours)
    try:
        given = (Input("d", LocalUrl(str(tmp_path / "mine")), access=Access.ENV),)
        code = "import os; print(open(os.environ['d'] + '/danlu.sqlite').read())"
        ref = start(house, code, inputs=given)
        seen = finish(house, ref)
        assert seen.exit is not None
        assert seen.exit.problem is ReasonCode.INPUT_FAILED
        assert b"secret" not in whole_log(house, ref)
    finally:
        house.close()


NOBODY = 65534
SYSTEM_PYTHON = Path("/usr/bin/python3")


def test_a_user_without_rights_gets_what_the_machine_gives_him() -> None:
    """The job runs; its events and the engine say the same about what is missing."""
    _require_nobody()
    with tempfile.TemporaryDirectory() as name:
        os.chown(name, NOBODY, NOBODY)
        text = "import os; print(os.getuid(), os.access('/root/.ssh', os.R_OK), os.environ['HOME'])"
        order = json.dumps({"root": name, "text": text})
        found = json.loads(_said_by_nobody(["-m", "tests.contract.unprivileged", order]))
    user, key, home = found["log"].split()
    assert (found["exit"], user, key) == (0, str(NOBODY), "False")
    missing = set(found["unenforced"])
    assert ("limits-unenforced" in found["notes"]) is bool(missing & {"memory", "cpu", "pids"})
    assert ("namespaces-missing" in found["notes"]) is ("namespaces" in missing)
    assert ("files-unprotected" in found["notes"]) is ("landlock" in missing)
    assert (home == "/home/ma-user") is ("namespaces" not in missing)


def _require_nobody() -> None:
    require(os.geteuid() == 0 and shutil.which("setpriv"), "setpriv, and root to start as another")
    told = ["-c", "import sys; print(sys.version_info >= (3, 11))"]
    usable = SYSTEM_PYTHON.exists() and "True" in _said_by_nobody(told)
    require(usable, "a Python that every user may run: /usr/bin/python3, 3.11 or newer")


INSTALLS = """
import os, pathlib, sys
packages = next(pathlib.Path(sys.prefix).glob("lib/python3*/site-packages"))
for path in (packages / "old" / "there.py", packages / "old"):
    path.unlink() if path.is_file() else path.rmdir()
(packages / "new.py").write_text("answer = 42")
import new
print(new.answer, sorted(os.listdir(packages)))
"""


def test_a_user_without_rights_installs_what_he_likes_in_a_job() -> None:
    """The environment is read-only, its owner's too; a task changes what it sees of it alone."""
    _require_nobody()
    with tempfile.TemporaryDirectory() as name:
        os.chown(name, NOBODY, NOBODY)
        environment = Path(name, "environment")
        _said_by_nobody(["-m", "venv", "--without-pip", str(environment)])
        (packages,) = environment.glob("lib/python3*/site-packages")
        (packages / "old").mkdir()
        (packages / "old" / "there.py").touch()
        for path in (packages / "old" / "there.py", packages / "old", packages):
            os.chown(path, NOBODY, NOBODY)
            path.chmod(0o555)
        order = {"root": name, "text": INSTALLS, "environment": str(environment)}
        found = json.loads(
            _said_by_nobody(["-m", "tests.contract.unprivileged", json.dumps(order)])
        )
        left = [path.name for path in packages.iterdir()]
    if "namespaces-missing" not in found["notes"]:
        assert found["log"].strip() == "42 ['__pycache__', 'new.py']"
    assert left == ["old"]


def _said_by_nobody(words: list[str]) -> str:
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    done = subprocess.run(
        [*become, str(SYSTEM_PYTHON), *words],
        env={"PYTHONPATH": f"{ROOT}/src:{ROOT}", "HOME": "/nonexistent", "PATH": "/usr/bin:/bin"},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=False,
    )
    return done.stdout.decode()


def test_a_program_can_gain_no_rights(house: ProcessHouse) -> None:
    ref = start(
        house,
        """
        import json, pathlib, resource
        status = dict(
            line.split(":", 1)
            for line in pathlib.Path("/proc/self/status").read_text().splitlines()
        )
        print(json.dumps({
            "no_new_privs": status["NoNewPrivs"].strip(),
            "held": int(status["CapEff"], 16) | int(status["CapBnd"], 16),
            "core": resource.getrlimit(resource.RLIMIT_CORE),
            "files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        }))
        """,
    )
    finish(house, ref)
    told = json.loads(whole_log(house, ref))
    assert told["no_new_privs"] == "1"
    for dangerous in (2, 16, 17, 18, 19, 21, 22, 25, 27):  # DAC_READ_SEARCH, SYS_*, MKNOD
        assert not told["held"] & 1 << dangerous
    assert told["core"] == [0, 0]
    assert told["files"] > 1024


EVERYDAY = """
    import ctypes, hashlib, json, multiprocessing, os, pathlib, socket, sqlite3, ssl, subprocess
    import sys, tempfile

    for place in ("HOME", "MA_CACHE_DIR", "MA_JOB_DIR", "TMPDIR", "MA_LOG_DIR"):
        file = pathlib.Path(os.environ[place], "file")
        file.write_text("mine")
        file.rename(file.with_name("renamed"))
    with tempfile.TemporaryDirectory() as name:
        pathlib.Path(name, "link").symlink_to("/etc/hosts")
        assert pathlib.Path(name, "link").read_text()
        database = sqlite3.connect(name + "/x.sqlite")
        database.execute("create table t (x)")
        database.close()
    with multiprocessing.Pool(2) as pool:
        assert pool.map(abs, [-1, -2]) == [1, 2]
    lock = multiprocessing.Lock()          # shared memory
    with open("/dev/shm/danlu-everyday-%d" % os.getpid(), "wb") as shared:
        shared.write(b"x")
    os.unlink(shared.name)
    assert len(os.urandom(8)) == 8
    assert open("/dev/urandom", "rb").read(4)
    open("/dev/null", "w").write("x")
    said = subprocess.run(["/bin/bash", "-c", "echo hi | cat"], capture_output=True).stdout
    assert said == b"hi\\n"
    for file in ("/proc/cpuinfo", "/proc/self/maps"):
        assert pathlib.Path(file).read_text()
    assert os.path.exists("/sys/devices/system/cpu")
    assert os.listdir("/usr/lib")
    assert socket.gethostbyname("localhost")
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        socket.create_connection(server.getsockname()).close()
    child = os.fork()
    if child == 0:
        os.execv(sys.executable, [sys.executable, "-c", "import json"])
    os.kill(child, 0)
    assert os.wait()[1] == 0
    print("everything works", flush=True)
"""


@pytest.mark.parametrize("way", WAYS)
def test_what_programs_do_every_day_still_works(way: str) -> None:
    # Not below /tmp: where the server's data lies there, tasks without a view may not write to it.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        house = ProcessHouse(Path(name), isolation=WAYS[way])
        try:
            _every_day(house)
        finally:
            house.close()


def _every_day(house: ProcessHouse) -> None:
    ref = start(house, EVERYDAY)
    seen = finish(house, ref)
    assert whole_log(house, ref) == b"everything works\n"
    assert seen.exit is not None
    assert seen.exit.exit_code == 0


def test_an_input_of_this_machine_is_reached_where_it_lies(
    house: ProcessHouse, tmp_path: Path
) -> None:
    from danlu.model.job import Access, Input
    from danlu.model.url import LocalUrl

    data = tmp_path / "set"
    data.mkdir()
    (data / "a.txt").write_text("sample")
    ref = start(
        house,
        """
        import os, pathlib
        place = pathlib.Path(os.environ["data"])
        print((place / "a.txt").read_text())
        (place / "cache").write_text("x")
        """,
        inputs=(Input("data", LocalUrl(str(data)), access=Access.ENV),),
    )
    finish(house, ref)
    assert whole_log(house, ref) == b"sample\n"
    assert (data / "cache").exists()


def test_more_can_be_opened_to_every_task(tmp_path: Path) -> None:
    hidden = tmp_path / "secret"
    for name in ("read", "write"):
        (hidden / name).mkdir(parents=True)
        (hidden / name / "x").write_text("shared")
    (hidden / "x").write_text("no")
    house = ProcessHouse(
        tmp_path,
        isolation=Isolation(
            hidden=(str(hidden),),
            readable=(str(hidden / "read"),),
            writable=(str(hidden / "write"),),
        ),
    )
    try:
        ref = start(
            house,
            """
            import os, pathlib
            root = pathlib.Path(os.environ["ROOT"])
            print((root / "read" / "x").read_text(), (root / "write" / "x").read_text())
            (root / "write" / "y").write_text("y")
            for attempt in ((root / "x").read_text, (root / "read" / "y").touch):
                try:
                    attempt()
                    print("done")
                except OSError:
                    print("refused")
            """,
            environments={"ROOT": str(hidden)},
        )
        finish(house, ref)
        assert whole_log(house, ref).decode().split() == ["shared", "shared", "refused", "refused"]
    finally:
        house.close()
