"""The tables that the program carries: complete, of one mind, and every row with its source."""

from __future__ import annotations

from importlib import resources

import pytest

from danlu.images import matrix, resolve
from danlu.images.matrix import HEAD, TABLES, BadTable, Build, Matrix
from danlu.images.versions import cuda_tag, numbers, series
from danlu.model.image import CHANNELS, CPU, INDEX, PYPI, Ask

FOLDER = resources.files("danlu.images") / "data"
TEXTS = {name: (FOLDER / name).read_text("utf-8") for name in (HEAD, *TABLES)}


@pytest.fixture(scope="module")
def packaged() -> Matrix:
    return matrix.packaged()


def pypi_build(found: Matrix, torch: str, arch: str = "x86_64") -> Build:
    (build,) = (
        one
        for one in found.builds
        if series(torch) in one.series and one.channel == PYPI and one.arch == arch
    )
    return build


def test_the_matrix_is_read_once_and_has_a_version(packaged: Matrix) -> None:
    assert matrix.packaged() is packaged
    assert packaged.version.count(".") == 2
    assert len(packaged.releases) == 28
    assert [one.torch for one in packaged.releases][:: len(packaged.releases) - 1] == [
        "2.0.0",
        "2.15.0",
    ]


def test_every_row_says_whence_it_is(packaged: Matrix) -> None:
    sources = [row.source for row in packaged.releases]
    sources += [row.source for row in packaged.builds]
    sources += [row.source for row in packaged.gpus]
    sources += [row.source for row in packaged.drivers.values()]
    for source in sources:
        letters = source.split()[0].split("(")[0].rstrip(";").split("+")
        assert set(letters) <= packaged.sources.keys(), source


def test_pypis_wheels_and_pypis_builds_agree(packaged: Matrix) -> None:
    """Two tables tell of the same wheels: one from PyPI's page, one from the list of builds."""
    for release in packaged.releases:
        build = pypi_build(packaged, release.torch)
        assert build.tag == cuda_tag(release.cuda), release.torch
        assert build.sm == release.sm, release.torch
        assert build.cudnn == release.cudnn, release.torch
        assert build.read_from_wheel


def test_every_cuda_has_a_driver_floor_and_every_series_a_release(packaged: Matrix) -> None:
    for build in packaged.builds:
        version = f"{build.tag[2:-1]}.{build.tag[-1]}"
        assert build.tag == CPU or version in packaged.drivers, build
    known = {series(release.torch) for release in packaged.releases}
    assert known == {one for build in packaged.builds for one in build.series}


def test_no_pypi_wheel_carries_ptx(packaged: Matrix) -> None:
    assert not [one for one in packaged.builds if one.channel == PYPI and one.ptx]


def test_kernels_that_a_gpu_runs_are_those_of_the_rule(packaged: Matrix) -> None:
    built = {one for build in packaged.builds for one in build.sm or ()}
    for gpu in packaged.gpus:
        same = {one for one in built if one // 10 == gpu.sm // 10 and one <= gpu.sm}
        assert max(same) == max(built & set(gpu.runs_cubins)), gpu.gpu
        assert all(one // 10 == gpu.sm // 10 and one <= gpu.sm for one in gpu.runs_cubins)


def _in_range(torch: str, words: str) -> bool:
    if words == "all":
        return True
    first, dash, last = words.rstrip("+").partition("-")
    at_most = not dash or numbers(torch) <= numbers(last)
    return numbers(first) <= numbers(torch) and at_most


WITH_RANGES = [
    one.gpu for one in matrix.packaged().gpus if one.pypi_torch_range not in ("", "by arch")
]


@pytest.mark.parametrize("gpu", WITH_RANGES)
def test_the_ranges_of_the_gpu_table_are_what_the_rules_give(packaged: Matrix, gpu: str) -> None:
    row = next(one for one in packaged.gpus if one.gpu == gpu)
    for release in packaged.releases:
        python = f"3.{release.pythons[-1].rstrip('t')[1:]}"
        wanted = Ask(release.torch, gpus=(gpu,), python=python)
        answer = resolve.ask(packaged, wanted)
        assert (answer.choice is not None) == _in_range(release.torch, row.pypi_torch_range)
        beyond = resolve.ask(packaged, Ask(release.torch, "", (gpu,), python=python,
                                           channels=CHANNELS))  # fmt: skip
        first, _, cuda = row.any_index_range.partition(" ")
        if ".." in row.any_index_range:
            expected = numbers(release.torch) < numbers("2.15")
        elif row.any_index_range == "all":
            expected = True
        else:
            expected = numbers(release.torch) >= numbers(first)
            if expected and series(release.torch) == first:
                assert beyond.choice is not None
                assert (beyond.choice.cuda, beyond.choice.channel) == (cuda.rstrip("+"), INDEX)
        assert (beyond.choice is not None) == expected, release.torch


NAMES = {
    "Tesla K80": 37, "NVIDIA GeForce GTX 980 Ti": 52, "NVIDIA GeForce GTX TITAN X": 52,
    "Tesla M40 24GB": 52, "Tesla P100-PCIE-16GB": 60, "NVIDIA GeForce GTX 1080 Ti": 61,
    "Tesla P4": 61, "Quadro P4000": 61, "NVIDIA TITAN X (Pascal)": 61, "NVIDIA TITAN Xp": 61,
    "Tesla V100-SXM2-16GB": 70, "Tesla-V100": 70, "Tesla V100S-PCIE-32GB": 70,
    "NVIDIA TITAN V": 70, "Quadro GV100": 70, "Tesla T4": 75, "NVIDIA T4G": 75,
    "NVIDIA GeForce RTX 2080 Ti": 75, "NVIDIA GeForce GTX 1650": 75, "Quadro RTX 6000": 75,
    "NVIDIA TITAN RTX": 75, "NVIDIA A100-SXM4-80GB": 80, "NVIDIA A100 80GB PCIe": 80,
    "NVIDIA A100-SXM4-40GB MIG 1g.5gb": 80, "NVIDIA A800-SXM4-80GB": 80, "NVIDIA A30": 80,
    "NVIDIA A10G": 86, "NVIDIA A10": 86, "NVIDIA A16": 86, "NVIDIA A40": 86,
    "NVIDIA RTX A6000": 86, "NVIDIA RTX A4500": 86, "NVIDIA GeForce RTX 3090": 86,
    "NVIDIA GeForce RTX 3080 Laptop GPU": 86, "rtx3090": 86, "NVIDIA L4": 89, "NVIDIA L40S": 89,
    "NVIDIA L20": 89, "NVIDIA GeForce RTX 4090": 89, "NVIDIA GeForce RTX 4090 D": 89,
    "NVIDIA GeForce RTX 4060 Ti": 89, "NVIDIA RTX 6000 Ada Generation": 89,
    "NVIDIA RTX 5880 Ada Generation": 89, "NVIDIA RTX 4000 SFF Ada Generation": 89,
    "NVIDIA H100 80GB HBM3": 90, "NVIDIA H200": 90, "NVIDIA H20": 90, "NVIDIA GH200 480GB": 90,
    "NVIDIA B200": 100, "NVIDIA GB200": 100, "NVIDIA B300 SXM6 AC": 103,
    "NVIDIA GeForce RTX 5090": 120, "NVIDIA RTX PRO 6000 Blackwell Server Edition": 120,
    "NVIDIA GB10": 121, "GTX10xx": 61, "RTX30": 86, "A10/RTX30": 86, "sm_86": 86, "8.6": 86,
    "SM120": 120, "12.1": 121,
}  # fmt: skip


@pytest.mark.parametrize(("name", "sm"), NAMES.items())
def test_gpus_are_known_by_the_names_that_drivers_and_people_use(
    packaged: Matrix, name: str, sm: int
) -> None:
    found = packaged.capability(name)
    assert found is not None
    assert found[0] == sm


@pytest.mark.parametrize(
    "name",
    ["", "NVIDIA Graphics Device", "Ascend 910B", "AMD Instinct MI300X", "RTX 2050", "86", "70",
     "A1000000", "T4 + V100", "sm_"],
)  # fmt: skip
def test_what_is_not_known_is_not_guessed(packaged: Matrix, name: str) -> None:
    """An RTX 2050 is no Turing, whatever its number says."""
    assert packaged.capability(name) is None


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("torch_pypi.csv", "2.8.0,2025-08-06", "2.7.1,2025-08-06", "twice: ['2.7.1']"),
        ("torch_builds.csv", "2.8,x86_64,cu129", "2.8,x86_64,cu128", "torch_builds.csv: twice"),
        ("torch_builds.csv", "2.9-2.10,x86_64,cu126", "2.8-2.10,x86_64,cu126", "twice"),
        ("torch_builds.csv", "pypi,M\n", "pypi,\n", "torch_builds.csv:2: source is ''"),
        ("torch_builds.csv", "index,R+C\n", "index,R+X\n", "source is 'R+X'"),
        ("torch_builds.csv", "index,R+C\n", "mirror,R+C\n", "channel is 'mirror'"),
        ("torch_builds.csv", "37 50 60 70 75 80 86,,8.5.0.96", ",,8.5.0.96", "write ? where"),
        ("torch_builds.csv", "37 50 60 70 75 80 86,,8.5.0.96", "37 x,,8.5.0.96", "ValueError"),
        ("torch_pypi.csv", "2.27.3", "newest", "torch_pypi.csv:19: ValueError"),
        ("torch_pypi.csv", "manylinux_2_28,12.8", "musllinux,12.8", "wheel_tag is 'musllinux'"),
        ("torch_pypi.csv", ",39 310 311 312 313 313t,", ",,", "pythons is ''"),
        ("torch_pypi.csv", ",888,", ",888,1,", "more or fewer cells"),
        ("gpus.csv", "K80|K40", "K80|(K40", "gpus.csv:2: error"),
        ("drivers.csv", "450.80.02,515.43.04", "550.80.02,515.43.04", "is newer than"),
        ("drivers.csv", "11.8,450", "11.7,450", "drivers.csv: twice"),
        ("drivers.csv", "cuda,", "cudas,", "KeyError 'cuda'"),
        (HEAD, "version =", "versions =", "matrix.toml: 'version'"),
        (HEAD, "version = ", "version ", "matrix.toml"),
    ],
)  # fmt: skip
def test_a_bad_table_is_refused_with_its_row(name: str, old: str, new: str, said: str) -> None:
    assert old in TEXTS[name]
    with pytest.raises(BadTable) as caught:
        matrix.parse({**TEXTS, name: TEXTS[name].replace(old, new, 1)})
    assert said in str(caught.value)
