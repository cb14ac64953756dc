"""What is there when the program starts: code, inputs, outputs, and nothing outside its places."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from danlu.model.errors import Refused
from danlu.model.job import Input, Output
from danlu.model.reason import ReasonCode
from danlu.model.script import TaskPlan
from danlu.model.texts import text
from danlu.model.url import LocalUrl, ObjectUrl
from danlu.node import places, tree
from danlu.node.directory import TaskDirectory
from danlu.node.fetch import executable, relative
from danlu.node.stage import Stage, StageFailed, checkpoint_of
from danlu.node.target import open_target
from danlu.ports import task_directory as files
from danlu.ports.task_directory import AgentPlan, Isolation
from danlu.stores.folder import FolderStore


class Site:
    """A task directory with a store, and a plan that tests change."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = FolderStore(root / "objects")
        self.store.create_bucket("danlu")
        self.path = root / "task dir"
        self.path.mkdir()
        self.directory = TaskDirectory(str(self.path), "t")
        self.layout = places.layout(str(self.path), sys.executable, f"{sys.prefix}/bin:/usr/bin")
        self.plan = TaskPlan("j", 1, 0, "t", "n", command="true")

    def put(self, key: str, data: bytes = b"x", **metadata: str) -> None:
        self.store.put("danlu", key, data, metadata=metadata)

    def stage(self, *, check: Any = lambda: None, **changes: Any) -> Any:
        objects = {"kind": "folder", "root": str(self.root / "objects")}
        isolation = Isolation(closed=(str(self.root / "objects"),), open=str(self.root / "open"))
        plan = AgentPlan(replace(self.plan, **changes), self.layout, objects, isolation=isolation)
        return Stage(self.directory, plan, check).run()

    def notes(self) -> dict[str, dict[str, Any]]:
        """Notes by key; every one fills its text in both languages."""
        found = {}
        file = self.path / files.NOTES
        for line in file.read_text("utf-8").splitlines() if file.exists() else ():
            note = json.loads(line)
            text(note["key"], "en", **note["params"])
            text(note["key"], "zh", **note["params"])
            found[note["key"]] = note["params"]
        return found


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def names_in(directory: str | Path) -> list[str]:
    return sorted(path.name for path in Path(directory).iterdir())


def fails(site: Site, problem: ReasonCode, **changes: Any) -> dict[str, str | int]:
    with pytest.raises(StageFailed) as caught:
        site.stage(**changes)
    assert caught.value.problem is problem
    detail = caught.value.detail
    text(problem, "en", **detail)
    return detail


CODE = ObjectUrl("danlu", "my code/")


def test_the_places_are_made(site: Site) -> None:
    site.stage()
    for path in (site.layout.home, site.layout.cache, site.layout.temp, site.layout.job_dir):
        assert Path(path).is_dir()


def test_code_arrives_with_hidden_files_directories_and_execute_bits(site: Site) -> None:
    site.put("my code/train.py", b"print()")
    site.put("my code/.hidden/配置", b"1")
    site.put("my code/run.sh", b"#!/bin/sh", mode="755")
    site.put("my code/empty/", b"")
    site.put("my code 2/other.py")
    world = site.stage(code=CODE, boot_file="train.py", command="")
    code = Path(world.code_dir)
    assert code == Path(site.layout.job_dir, "my code")
    assert (code / "train.py").read_bytes() == b"print()"
    assert (code / ".hidden/配置").read_bytes() == b"1"
    assert (code / "empty").is_dir()
    assert (code / "run.sh").stat().st_mode & stat.S_IXUSR
    assert not (code / "train.py").stat().st_mode & stat.S_IXUSR
    assert names_in(code) == [".hidden", "empty", "run.sh", "train.py"]
    assert site.notes()["code-staged"]["files"] == 3


def test_code_that_is_not_there_is_named(site: Site) -> None:
    detail = fails(site, ReasonCode.CODE_FAILED, code=CODE, boot_file="x.py", command="")
    assert "obs://danlu/my code/" in str(detail["detail"])
    other = ObjectUrl("elsewhere", "code/")
    detail = fails(site, ReasonCode.CODE_FAILED, code=other, boot_file="x.py", command="")
    assert "elsewhere" in str(detail["detail"])


def test_an_input_is_a_directory_of_objects(site: Site) -> None:
    for number in range(30):  # more than are copied one after the other
        site.put(f"data/a/{number}.bin", bytes([number]) * 10_000)
    site.put("data/top", b"t")
    world = site.stage(inputs=(Input("data", ObjectUrl("danlu", "data/")),))
    place = Path(world.inputs[0])
    assert place == Path(site.layout.mount, "inputs", "data_0")
    assert (place / "top").read_bytes() == b"t"
    for number in range(30):
        assert (place / f"a/{number}.bin").read_bytes() == bytes([number]) * 10_000
    assert site.notes()["input-staged"]["files"] == 31


def test_an_input_may_be_one_object(site: Site) -> None:
    site.put("data/one.bin", b"1")
    site.put("data/one.bin2", b"2")
    world = site.stage(inputs=(Input("data", ObjectUrl("danlu", "data/one.bin")),))
    assert names_in(world.inputs[0]) == ["one.bin"]


def test_an_input_without_its_slash_is_a_directory_too(site: Site) -> None:
    site.put("data/one.bin", b"1")
    world = site.stage(inputs=(Input("data", ObjectUrl("danlu", "data")),))
    assert names_in(world.inputs[0]) == ["one.bin"]


def test_a_whole_bucket_is_an_input(site: Site) -> None:
    site.put("a", b"1")
    site.put("b/c", b"2")
    world = site.stage(inputs=(Input("all", ObjectUrl("danlu", "")),))
    assert Path(world.inputs[0], "b/c").read_bytes() == b"2"


def test_an_input_that_is_not_there_is_named(site: Site) -> None:
    missing = (Input("data", ObjectUrl("danlu", "none/")),)
    detail = fails(site, ReasonCode.INPUT_FAILED, inputs=missing)
    assert detail["name"] == "data"
    assert "obs://danlu/none/" in str(detail["detail"])
    gone = (Input("here", LocalUrl("/no/such/place")),)
    detail = fails(Site(site.root / "b"), ReasonCode.INPUT_FAILED, inputs=gone)
    assert detail["name"] == "here"
    assert "/no/such/place" in str(detail["detail"])


def test_keys_that_cannot_be_paths_are_left_out_and_named(site: Site) -> None:
    for key in ("d/good", "d//double", "d/../up", "d/./dot", "d/" + "x" * 300, "d/nul\0"):
        site.put(key)
    world = site.stage(inputs=(Input("d", ObjectUrl("danlu", "d/")),))
    assert names_in(world.inputs[0]) == ["good"]
    assert site.notes()["objects-skipped"]["count"] == 5
    assert not Path(site.layout.mount, "inputs", "up").exists()


def test_a_key_that_is_file_and_directory_at_once_fails_the_input(site: Site) -> None:
    site.put("d/x")
    site.put("d/x/y")
    detail = fails(site, ReasonCode.INPUT_FAILED, inputs=(Input("d", ObjectUrl("danlu", "d/")),))
    assert detail["name"] == "d"


def test_a_local_directory_is_used_where_it_lies(site: Site) -> None:
    data = site.root / "数据"
    data.mkdir()
    (data / "x").write_text("1")
    world = site.stage(inputs=(Input("d", LocalUrl(str(data))),))
    place = Path(world.inputs[0])
    assert place.is_symlink()
    assert place.resolve() == data
    assert site.notes()["input-linked"]["name"] == "d"


def test_a_local_file_is_found_in_a_directory(site: Site) -> None:
    (site.root / "one.csv").write_text("1,2")
    world = site.stage(inputs=(Input("d", LocalUrl(str(site.root / "one.csv"))),))
    assert Path(world.inputs[0], "one.csv").read_text() == "1,2"


@pytest.mark.parametrize("closed", ["objects", "objects/danlu", "objects/danlu/index.db"])
def test_a_link_put_in_the_stead_of_a_place_since_the_submit_opens_nothing(
    site: Site, closed: str
) -> None:
    """What the place was at the submit is not asked: what it is now counts, on every way to it."""
    way = site.root / "way"
    way.symlink_to(site.root / closed)
    for url in (LocalUrl(str(way)), LocalUrl(f"{way}/..")):
        detail = fails(site, ReasonCode.INPUT_FAILED, inputs=(Input("d", url),))
        assert str(site.root / "objects") in str(detail["detail"])
        fails(site, ReasonCode.OUTPUT_FAILED, outputs=(Output("o", url, prefetch=True),))
    with pytest.raises(Refused, match="no job may be given"):
        open_target(LocalUrl(str(way)), {}, Isolation(closed=(str(site.root / "objects"),)), "o")


def test_a_link_to_what_is_not_closed_is_followed_to_its_end(site: Site) -> None:
    (site.root / "data").mkdir()
    (site.root / "way").symlink_to(site.root / "data")
    world = site.stage(inputs=(Input("d", LocalUrl(str(site.root / "way"))),))
    assert Path(world.inputs[0]).readlink() == site.root / "data"


@pytest.mark.parametrize(
    "place", ["/etc/x", "/home/ma-user/../../etc/x", "/", "relative", "/home/ma-user/in/../../../x"]
)
def test_nothing_is_put_outside_the_tasks_places(site: Site, place: str) -> None:
    site.put("d/x")
    outside = (Input("d", ObjectUrl("danlu", "d/"), local_dir=place),)
    detail = fails(site, ReasonCode.INPUT_FAILED, inputs=outside)
    assert site.layout.home in str(detail["detail"])


def test_nothing_is_put_through_a_link_into_a_users_data(site: Site) -> None:
    data = site.root / "precious"
    data.mkdir()
    site.put("d/x")
    inputs = (
        Input("a", LocalUrl(str(data)), local_dir="/home/ma-user/in"),
        Input("b", ObjectUrl("danlu", "d/"), local_dir="/home/ma-user/in/below"),
    )
    assert fails(site, ReasonCode.INPUT_FAILED, inputs=inputs)["name"] == "b"
    assert not list(data.iterdir())


def test_channels_may_choose_their_places(site: Site) -> None:
    site.put("d/x")
    world = site.stage(
        inputs=(Input("d", ObjectUrl("danlu", "d/"), local_dir="/cache/d"),),
        outputs=(Output("o", ObjectUrl("danlu", "o/"), local_dir="/home/ma-user/out"),),
    )
    assert world.inputs == (f"{site.layout.cache}/d",)
    assert world.outputs == (f"{site.layout.home}/out",)
    assert Path(world.outputs[0]).is_dir()


def test_two_channels_in_one_place_are_refused(site: Site) -> None:
    outputs = tuple(
        Output(name, ObjectUrl("danlu", f"{name}/"), local_dir="/cache/same") for name in "ab"
    )
    fails(site, ReasonCode.OUTPUT_FAILED, outputs=outputs)


def test_an_output_brings_what_is_stored_if_asked_to(site: Site) -> None:
    site.put("run/ckpt/1", b"one")
    plain = Output("o", ObjectUrl("danlu", "run/"))
    world = site.stage(outputs=(plain, replace(plain, name="p", prefetch=True)))
    assert not list(Path(world.outputs[0]).iterdir())
    assert Path(world.outputs[1], "ckpt/1").read_bytes() == b"one"
    assert site.notes()["output-prefetched"]["files"] == 1
    (line,) = (site.path / files.STORED).read_text("utf-8").splitlines()
    assert json.loads(line)["name"] == "ckpt/1"


def test_an_output_with_nothing_stored_yet_is_empty(site: Site) -> None:
    output = Output("o", ObjectUrl("danlu", "run/"), prefetch=True)
    world = site.stage(outputs=(output,))
    assert not list(Path(world.outputs[0]).iterdir())
    assert "output-prefetched" not in site.notes()


def test_a_local_output_is_made_and_brought(site: Site) -> None:
    kept = site.root / "kept"
    (kept / "deep").mkdir(parents=True)
    (kept / "deep/ckpt").write_text("1")
    (kept / "link").symlink_to("/etc/passwd")
    site.stage(outputs=(Output("n", LocalUrl(str(site.root / "new/one"))),))
    assert (site.root / "new/one").is_dir()
    again = Site(site.root / "again")
    world = again.stage(outputs=(Output("k", LocalUrl(str(kept)), prefetch=True),))
    assert Path(world.outputs[0], "deep/ckpt").read_text() == "1"
    assert names_in(world.outputs[0]) == ["deep"]


def test_an_output_that_cannot_be_written_fails_before_the_program_runs(site: Site) -> None:
    (site.root / "file").touch()
    for url in (ObjectUrl("elsewhere", "o/"), LocalUrl(str(site.root / "file/below"))):
        place = Site(site.root / str(len(str(url))))
        fails(place, ReasonCode.OUTPUT_FAILED, outputs=(Output("o", url),))


def test_staging_ends_when_the_task_is_to_be_stopped(site: Site) -> None:
    for number in range(20):
        site.put(f"d/{number}", b"x" * 100_000)
    looks = iter(range(10))

    def check() -> None:
        next(looks)

    with pytest.raises(StopIteration):
        site.stage(check=check, inputs=(Input("d", ObjectUrl("danlu", "d/")),))


def test_a_damaged_store_is_an_error_of_the_input(site: Site) -> None:
    site.put("d/x", b"12345")
    blobs = [path for path in (site.root / "objects").rglob("blobs/*/*") if path.is_file()]
    for blob in blobs:
        blob.chmod(0o600)
        blob.write_bytes(b"123")
    detail = fails(site, ReasonCode.INPUT_FAILED, inputs=(Input("d", ObjectUrl("danlu", "d/")),))
    assert detail["name"] == "d"


@pytest.mark.parametrize(
    ("mode", "answer"),
    [("755", True), ("0755", True), ("0o755", True), ("100755", True), ("644", False),
     ("", False), ("x", False), ("-1", False), ("9", False), ("7" * 50, False)],
)  # fmt: skip
def test_the_execute_bit_is_in_the_metadata(mode: str, *, answer: bool) -> None:
    assert executable(mode) is answer


@pytest.mark.parametrize("key", ["a", "a/b", " ", "a\nb", "..a", "a/…/b", "\\", "~", "C:"])
def test_most_keys_are_paths(key: str) -> None:
    assert relative(key) == key


# ---------------------------------------------------------------- requirements


def wheel(directory: Path, name: str, version: str, body: str) -> None:
    """A wheel of one module, as `pip` takes it from a directory."""
    info = f"{name}-{version}.dist-info"
    directory.mkdir(exist_ok=True)
    with zipfile.ZipFile(directory / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}.py", body)
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        archive.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(
            f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n"
        )


def requirements(site: Site, text_: str) -> dict[str, Any]:
    site.put("my code/train.py", b"")
    site.put("my code/pip-requirements.txt", text_.encode())
    return {"code": CODE, "boot_file": "train.py", "command": ""}


def test_requirements_are_installed_for_this_task_alone(site: Site) -> None:
    wheels = site.root / "wheels"
    wheel(wheels, "danlu_probe_a", "1.0", "value = 1\n")
    changes = requirements(site, f"--no-index\n--find-links {wheels}\ndanlu_probe_a==1.0\nclick\n")
    world = site.stage(**changes)
    python, script = world.argv
    assert script == f"{world.code_dir}/train.py"
    assert Path(python).is_relative_to(site.path)
    assert world.env["PATH"].startswith(f"{Path(python).parent}:")
    # click is the parent's: it counts as there although there is no index to get it from
    line = "import danlu_probe_a, click; print(danlu_probe_a.value, click.__file__)"
    told = subprocess.run([python, "-c", line], capture_output=True, text=True, check=True)
    value, place = told.stdout.split(maxsplit=1)
    assert value == "1"
    assert place.startswith(sys.prefix)
    inherited = subprocess.run(
        [sys.executable, "-c", "import danlu_probe_a"], stderr=subprocess.DEVNULL, check=False
    )
    assert inherited.returncode != 0
    log = (site.path / files.LOG).read_text("utf-8")
    assert "danlu_probe_a" in log.replace("-", "_")
    assert {"requirements-installing", "requirements-installed"} <= site.notes().keys()


def test_packages_that_the_job_names_are_installed_beside_those_of_its_code(site: Site) -> None:
    """Without an image: by pip, wherever the task's directory lies."""
    wheels = site.root / "wheels"
    for name in ("danlu_probe_a", "danlu_probe_b"):
        wheel(wheels, name, "1.0", "value = 1\n")
    changes = requirements(site, f"--no-index\n--find-links {wheels}\ndanlu_probe_a==1.0\n")

    world = site.stage(**changes, packages=("danlu_probe_b>=1",))

    line = "import danlu_probe_a, danlu_probe_b; print('both')"
    told = subprocess.run([world.argv[0], "-c", line], capture_output=True, text=True, check=True)
    assert told.stdout == "both\n"


def test_requirements_that_cannot_be_installed_end_the_task_with_pips_words(site: Site) -> None:
    """(cases 1, 2): nothing else is installed in the place of what was asked for."""
    changes = requirements(site, "--no-index\ndanlu_no_such_package==9.9\n")
    detail = fails(site, ReasonCode.REQUIREMENTS_FAILED, **changes)
    assert "danlu_no_such_package" in str(detail["detail"]).replace("-", "_")


def test_requirements_need_an_interpreter(site: Site) -> None:
    site.layout = replace(site.layout, python="/no/python")
    detail = fails(site, ReasonCode.REQUIREMENTS_FAILED, **requirements(site, "x\n"))
    assert "/no/python" in str(detail["detail"])


def test_an_installation_ends_when_the_task_is_to_be_stopped(site: Site) -> None:
    source = site.root / "endless"
    source.mkdir()
    backend = 'requires = []\nbuild-backend = "endless"\nbackend-path = ["."]\n'
    (source / "pyproject.toml").write_text(f"[build-system]\n{backend}")
    (source / "endless.py").write_text("import time\nwhile True: time.sleep(1)\n")
    changes = requirements(site, f"--no-index\n{source}\n")
    looks = iter(range(80))
    with pytest.raises(StopIteration):
        site.stage(check=lambda: next(looks), **changes)
    time.sleep(0.2)
    assert not [p.pid for p in tree.processes() if str(site.root) in _command(p.pid)]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text("utf-8")
    except OSError:
        return ""


def test_layouts_of_long_paths_have_short_temporary_places(tmp_path: Path) -> None:
    short = places.layout("/d", "/p", "/b")
    assert short.temp == "/d/work/temp"
    long = places.layout("/" + "d" * 80, "/p", "/b")
    assert len(long.temp) < 60
    assert long.temp != places.layout("/" + "e" * 80, "/p", "/b").temp
    deep = tmp_path / ("d" * 80)
    deep.mkdir()
    layout = places.layout(str(deep), "/p", "/b")
    places.make(layout, str(deep))
    Path(layout.temp, "x").touch()
    assert (deep / "work/temp/x").exists()
    places.remove_work(layout, str(deep))
    assert not Path(layout.temp).is_symlink()
    assert not (deep / "work").exists()


def test_the_modes_of_our_own_files_are_private(site: Site) -> None:
    site.directory.publish(files.EXIT, {})
    site.directory.note("limits-unenforced")
    for name in (files.EXIT, files.NOTES):
        assert (site.path / name).stat().st_mode & 0o077 == 0


# ---------------------------------------------------------------- damage


def blob_of(site: Site, key: str) -> Path:
    return Path(site.store.local_file("danlu", key))


@pytest.mark.parametrize("damage", ["a flipped bit", "a torn end"])
def test_a_damaged_checkpoint_is_left_out_and_the_one_before_it_is_used(
    site: Site, damage: str
) -> None:
    """(faults 24, 25) The hash that does not match is named."""
    for step in (100, 200):
        for part in ("weights.bin", "optimizer/shard-0"):
            site.put(f"run/step-{step}/{part}", bytes(range(256)) * 40)
    site.put("run/best.bin", b"best")
    blob = blob_of(site, "run/step-200/optimizer/shard-0")
    whole = blob.read_bytes()
    blob.chmod(0o600)
    blob.write_bytes(whole[:77] if damage == "a torn end" else whole[:5] + b"!" + whole[6:])
    output = Output("o", ObjectUrl("danlu", "run/"), prefetch=True)
    world = site.stage(outputs=(output,))
    assert names_in(world.outputs[0]) == ["best.bin", "step-100"]
    assert names_in(Path(world.outputs[0], "step-100")) == ["optimizer", "weights.bin"]
    said = site.notes()["output-damaged"]
    assert said == {"name": "o", "file": "step-200/optimizer/shard-0", "left_out": "step-200"}


def test_a_damaged_input_is_not_passed_over(site: Site) -> None:
    site.put("data/a", b"whole")
    blob_of(site, "data/a").write_bytes(b"who")
    said = fails(site, ReasonCode.INPUT_FAILED, inputs=(Input("i", ObjectUrl("danlu", "data/")),))
    assert "3 bytes" in str(said["detail"]) or "size" in str(said["detail"])


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("step-200/a", "step-200"), ("models/step-200/x/a", "models/step-200"), ("a.pt", "a.pt"),
        ("epoch_3/step_7/a", "epoch_3"), ("last/a", "last"), ("last/x/a", "last/x"),
    ],
)  # fmt: skip
def test_the_checkpoint_of_a_file(name: str, whole: str) -> None:
    assert checkpoint_of(name) == whole
