"""`danlu image explain`: for people in two languages, for programs, and from this machine."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import pytest

from danlu.faces.cli.image import own_python
from danlu.faces.cli.machine import Machine, wheel_architecture
from danlu.faces.cli.main import main
from tests.faces.cli.house import House
from tests.fakes import nvml

V100 = ["--gpu", "V100", "--driver", "535.104.05", "--python", "3.11", "--glibc", "2.36",
        "--arch", "x86_64"]  # fmt: skip


def run(
    capsys: pytest.CaptureFixture[str], *words: str, language: str = "en"
) -> tuple[int, str, str]:
    status = main(["--lang", language, "image", "explain", *words])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_a_choice_is_printed_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, *V100, "--torch", "2.8.0", "--json")
    said = json.loads(out)
    assert status == 0
    assert said.keys() == {"choice", "warnings", "rejected"}
    assert said["choice"].keys() == {"torch", "cuda", "channel", "reasons"}
    assert (said["choice"]["torch"], said["choice"]["cuda"]) == ("2.8.0", "cu128")
    assert said["choice"]["channel"] == "pypi"
    assert any("V100 (sm_70)" in one for one in said["choice"]["reasons"])
    assert any("570.26" in one for one in said["warnings"])
    assert all(one["rule"] in ("gpu", "channel") for one in said["rejected"])


def test_a_refusal_is_five_and_names_what_would_do(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, *V100, "--torch", "2.14.1", "--json")
    said = json.loads(out)
    assert (status, err) == (5, "")
    assert said["choice"] is None
    found = next(one for one in said["rejected"] if one["cuda"] == "cu130")
    assert found.keys() == {"torch", "cuda", "rule", "found", "needs", "fix"}
    assert (found["torch"], found["rule"], found["found"]) == ("2.14.1", "gpu", "V100 (sm_70)")
    assert "cu126" in found["fix"]
    assert "2.10.0" in found["fix"]
    assert run(capsys, *V100, "--torch", "2.14.1", "--channel", "index")[0] == 0


def test_only_sentences_are_translated(capsys: pytest.CaptureFixture[str]) -> None:
    words = (*V100, "--torch", "2.14.1", "--channel", "index", "--json")
    english, chinese = (json.loads(run(capsys, *words, language=one)[1]) for one in ("en", "zh"))
    for one in (english, chinese):
        for part in one["rejected"]:
            assert part.pop("fix").isascii() == (one is english)
    assert english["rejected"] == chinese["rejected"]
    reasons = english["choice"].pop("reasons"), chinese["choice"].pop("reasons")
    assert english["choice"] == chinese["choice"]
    assert reasons[0][0].isascii()
    assert not reasons[1][0].isascii()


@pytest.mark.parametrize(
    ("language", "choice", "because", "none"),
    [
        ("en", "torch 2.8.0, cu128, from pypi", "because V100 (sm_70)", "no build does"),
        ("zh", "torch 2.8.0，cu128，取自 pypi", "理由：V100 (sm_70)", "没有可用的构建"),
    ],
)
def test_people_read_it_in_their_language(
    capsys: pytest.CaptureFixture[str], language: str, choice: str, because: str, none: str
) -> None:
    status, out, _ = run(capsys, *V100, "--torch", "2.8.0", language=language)
    lines = out.splitlines()
    assert status == 0
    assert "535.104.05" in lines[0]
    assert lines[1] == choice
    assert because in out
    status, out, _ = run(capsys, *V100, "--torch", "2.13.0", language=language)
    assert status == 5
    assert out.splitlines()[1] == none
    assert "cu126" in out


def test_many_refusals_are_counted_not_listed(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, *V100[2:], "--gpu", "K80", "--gpu", "B200", "--channel", "index")
    assert status == 5
    assert len(out.splitlines()) < 20
    assert "--json lists them" in out.splitlines()[-1]
    status, out, _ = run(capsys, *V100, "-q")
    assert (status, out) == (0, "2.10.0 cu128 pypi\n")


def test_names_from_outside_cannot_steer_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "--gpu", "\x1b[2JV\n", "--torch", "2.8.0", "--driver", "none")[1]
    assert "\x1b" not in out
    assert "\\x1b[2JV" in out


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["--torch", "latest"], "torch"), (["--driver", "new"], "driver"),
        (["--python", "2"], "python"), (["--glibc", "musl"], "glibc"), (["--cuda", "12.8"], "cuda"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_a_mistake(
    capsys: pytest.CaptureFixture[str], words: list[str], field: str
) -> None:
    status, out, err = run(capsys, "--gpu", "none", *words)
    assert (status, out) == (2, "")
    assert field in err
    assert words[1] in err
    assert not run(capsys, "--gpu", "none", *words, language="zh")[2].isascii()


def test_what_is_not_given_is_this_machines(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """(case 53) The driver's own answer, in a process of its own; no server is started."""
    fake = nvml.FakeNvml(nvml.build(tmp_path_factory.mktemp("nvml")), tmp_path / "values")
    fake.write({"driver": "535.104.05", "devices": 2})
    for index in range(2):
        fake.gpu(index, uuid=f"GPU-{index}", name="Tesla V100-SXM2-16GB", memory_total=1 << 34)
    house = House(tmp_path / "data", tmp_path)
    said = _explained(house, fake, "--torch", "2.8.0", "--arch", "x86_64")
    assert said["choice"]["cuda"] == "cu128"
    reasons = " ".join(said["choice"]["reasons"])
    assert "Tesla V100-SXM2-16GB (sm_70)" in reasons
    assert "driver 535.104.05" in reasons
    assert f"Python {own_python()}" in reasons
    assert str(Machine().glibc()) in reasons
    planned = _explained(house, fake, "--torch", "2.8.0", "--arch", "x86_64", "--driver", "none")
    assert any("this is a plan" in one for one in planned["warnings"])
    assert not (tmp_path / "data").exists()


def _explained(house: House, fake: nvml.FakeNvml, *words: str) -> Any:
    done = house.run("image", "explain", "--json", *words, env=fake.environment)
    assert done.stderr == b""
    return json.loads(done.stdout)


def test_the_machine_as_wheels_name_it(tmp_path: Path) -> None:
    assert wheel_architecture("AMD64") == "x86_64"
    assert wheel_architecture("arm64") == "aarch64"
    assert Machine().architecture == wheel_architecture(platform.machine())
    version = tmp_path / "sys" / "module" / "nvidia" / "version"
    version.parent.mkdir(parents=True)
    version.write_text("580.95.05\n")
    assert Machine(tmp_path).driver() == "580.95.05"
    version.write_text("rolling\n")
    assert Machine(tmp_path).driver() is None
