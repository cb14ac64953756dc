"""New releases are read from an index by ranges, and shown; no wheel is downloaded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources

import pytest

from danlu.faces.cli.main import main
from danlu.images import matrix, refresh
from danlu.images.matrix import HEAD, TABLES
from danlu.images.refresh import Refreshed
from danlu.model.errors import Unavailable
from tests.images.wheel_index import BALLAST, Index, served, torch_wheel, wheel

PACKAGED = matrix.packaged()
NEW = "2.99.0"
PLATFORM = "manylinux_2_28_x86_64"
REQUIRES = [
    "filelock",
    'nvidia-cudnn-cu13==9.30.1.2; platform_system == "Linux"',
    'nvidia-nccl-cu13==2.31.0; platform_system == "Linux"',
    'cuda-toolkit[cublas,cudart]==13.3.1; platform_system == "Linux"',
    'triton~=3.12.0; platform_system == "Linux"',
    'opt-einsum==3.3; extra == "opt-einsum"',
]


@pytest.fixture
def index() -> Iterator[Index]:
    made = Index()
    data = torch_wheel(NEW, "13.0", REQUIRES, "sm_75 sm_80 sm_86 sm_90a sm_120 compute_120")
    for python in ("cp311-cp311", "cp313-cp313t", "cp312-cp312"):
        made.add("torch", f"torch-{NEW}-{python}-{PLATFORM}.whl", data)
    with served(made) as running:
        yield running


def found_in(index: Index) -> Refreshed:
    return refresh.refresh(PACKAGED, index.url)


def test_a_new_release_becomes_a_row(index: Index) -> None:
    metadata = f"Name: torchvision\nRequires-Dist: torch=={NEW}\n"
    name = f"torchvision-0.99.0-cp311-cp311-{PLATFORM}.whl"
    files = {"torchvision-0.99.0.dist-info/METADATA": metadata.encode()}
    index.add("torchvision", name, wheel(files))
    found = found_in(index)
    assert found.releases == (
        {
            "torch": NEW,
            "released": "2027-01-20",
            "pythons": "311 312 313t",
            "wheel_tag": "manylinux_2_28",
            "cuda": "13.0",
            "cuda_runtime": "toolkit 13.3.1",
            "cudnn": "9.30.1.2",
            "nccl": "2.31.0",
            "triton": "~3.12.0",
            "torchvision": "0.99.0",
            "torchaudio": "?",
            "wheel_mb": "10",
            "sm": "75 80 86 90 120",
            "source": "M",
        },
    )
    assert found.builds == (
        {
            "series": "2.99",
            "arch": "x86_64",
            "cuda_tag": "cu130",
            "sm": "75 80 86 90 120",
            "ptx": "120",
            "cudnn": "9.30.1.2",
            "channel": "pypi",
            "source": "M",
        },
    )


def test_no_wheel_is_downloaded(index: Index) -> None:
    found = found_in(index)
    assert index.asked
    assert all(one[1] for one in index.asked), "a request without a range"
    sent = sum(one[2] for one in index.asked)
    assert found.fetched <= sent < BALLAST / 3
    assert found.size > BALLAST
    assert {one[0] for one in index.asked} == {f"torch-{NEW}-cp311-cp311-{PLATFORM}.whl"}


def test_the_rows_fit_into_the_tables(index: Index) -> None:
    """What is shown can be put into the tables as it is, once a person has filled what is `?`."""
    found = found_in(index)
    folder = resources.files("danlu.images") / "data"
    texts = {name: (folder / name).read_text("utf-8") for name in (HEAD, *TABLES)}
    for name, rows in (("torch_pypi.csv", found.releases), ("torch_builds.csv", found.builds)):
        for row in rows:
            assert list(row) == texts[name].splitlines()[0].split(",")
            texts[name] += ",".join(row.values()).replace(",?,", ",0.99.0,") + "\n"
    grown = matrix.parse(texts)
    assert grown.releases[-1].torch == NEW
    diff = found.diff().splitlines()
    added = [line for line in diff if line.startswith("+") and not line.startswith("+++")]
    assert [line[1:].split(",")[0] for line in added] == [NEW, "2.99"]
    assert not [line for line in diff if line.startswith("-") and not line.startswith("---")]


def test_what_is_known_withdrawn_unfinished_or_for_others_is_left_out(index: Index) -> None:
    index.projects["torch"].clear()
    for name in (
        f"torch-2.15.0-cp311-cp311-{PLATFORM}.whl", "torch-2.98.0-cp311-cp311-win_amd64.whl",
        f"torch-2.97.0rc1-cp311-cp311-{PLATFORM}.whl",
        f"torch-2.96.0+cu130-cp311-cp311-{PLATFORM}.whl",
        "torch-2.95.0-cp311-cp311-manylinux_2_28_aarch64.whl", "torch-2.94.0.tar.gz",
        f"torch-1.13.1-cp311-cp311-{PLATFORM}.whl", "torch-odd.whl",
        f"torch-2.93.0-cp311-cp311-{PLATFORM}.whl",
    ):  # fmt: skip
        index.add("torch", name, b"never read")
    index.yanked.add(f"torch-2.93.0-cp311-cp311-{PLATFORM}.whl")
    found = found_in(index)
    assert (found.releases, found.builds, found.diff()) == ((), (), "")
    assert index.asked == []


def test_an_index_without_ranges_is_left_before_it_sends_everything(index: Index) -> None:
    index.ranges = False
    with pytest.raises(Unavailable) as caught:
        found_in(index)
    assert "status 200 to a request for a range" in str(caught.value)
    assert len(index.asked) == 1


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"no zip at all" * 1000, "not a zip file"),
        (wheel({}, 10), "0 files end in .dist-info/METADATA"),
        (torch_wheel(NEW, "", [], ""), "names no CUDA"),
    ],
)
def test_a_wheel_that_cannot_be_read_is_named(index: Index, data: bytes, said: str) -> None:
    index.projects["torch"] = {f"torch-{NEW}-cp311-cp311-{PLATFORM}.whl": data}
    with pytest.raises(Unavailable) as caught:
        found_in(index)
    assert said in str(caught.value)
    assert NEW in str(caught.value)
    assert not caught.value.message("zh").isascii()


def test_an_index_that_cannot_be_read(index: Index) -> None:
    index.content_type = "text/html"
    with pytest.raises(Unavailable, match="text/html"):
        found_in(index)
    for url in ("http://127.0.0.1:9/simple", "file:///etc", index.url + "/nothing"):
        with pytest.raises(Unavailable) as caught:
            refresh.refresh(PACKAGED, url)
        assert url in str(caught.value)


def test_the_command_shows_the_difference(index: Index, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["image", "matrix", "refresh", "--index-url", index.url]
    assert main(["--lang", "en", *words]) == 0
    said = capsys.readouterr()
    assert f"+{NEW},2027-01-20,311 312 313t," in said.out
    assert "1 new" in said.err
    assert main([*words, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["releases"][0]["torch"] == NEW
    assert shown["fetched_bytes"] < shown["wheel_bytes"] / 3
    index.projects["torch"].clear()
    assert main(["--lang", "zh", *words]) == 0
    assert capsys.readouterr().out == ""
    assert main(["image", "matrix", "refresh", "--index-url", "http://127.0.0.1:9"]) == 75


def test_the_matrix_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--lang", "en", "image", "matrix", "show"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(PACKAGED.releases) + 1
    assert lines[1].split()[:2] == ["2.15.0", "2026-10-28"]
    assert main(["image", "matrix", "show", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["version"] == PACKAGED.version
    assert set("MRBCUTN") == set(shown["sources"])
