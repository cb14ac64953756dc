"""Definitions: what is read, what is refused and how, and the built-in ones."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from importlib import resources
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from danlu.images import definition, matrix
from danlu.images.definition import Definition, Runtime
from danlu.model.errors import Invalid, Missing
from danlu.model.image import DoesNotFit
from danlu.model.texts.phrases import PHRASES

PACKAGED = matrix.packaged()

WHOLE = """\
schema = 1
name = "pytorch-cuda"
version = "2.8"
[base]
image = "debian:bookworm"
apt_snapshot = "20250520T000000Z"
apt = ["openssh-server", "tini", "git", "libgomp1"]
[python]
version = "3.11"
[torch]
version = "2.8.0"
companions = ["torchvision"]
backends = ["cu128", "cu126"]
[target]
gpus = ["T4", "V100", "A100"]
min_driver = "525.60.13"
channels = ["pypi", "index"]
[packages]
pinned = ["numpy >=2, <3", "jupyterlab", "tensorboard"]
[runtime]
user = { uid = 1000, gid = 100, name = "ma-user" }
ssh = "keys-only"
jupyter_auth = "token-required"
shm_min_mb = 1024
"""


def test_a_whole_definition() -> None:
    assert definition.parse(WHOLE) == Definition(
        "pytorch-cuda",
        "2.8",
        "debian:bookworm",
        "20250520T000000Z",
        ("git", "libgomp1", "openssh-server", "tini"),
        "3.11",
        "2.8.0",
        ("torchvision",),
        ("cu126", "cu128"),
        ("A100", "T4", "V100"),
        "525.60.13",
        ("index", "pypi"),
        ("jupyterlab", "numpy>=2,<3", "tensorboard"),
        Runtime(1000, 100, "ma-user", "keys-only", "token-required", 1024),
    )
    assert definition.parse(WHOLE).id == "pytorch-cuda-2.8"


def test_what_may_be_left_out_has_safe_defaults() -> None:
    short = WHOLE[: WHOLE.index("[target]")]
    found = definition.parse(short)
    assert found.channels == ("pypi",)
    assert found.runtime == Runtime(1000, 100, "ma-user", "keys-only", "token-required", 1024)


@pytest.mark.parametrize(
    ("old", "new", "key", "said"),
    [
        ("schema = 1", "schema = 2", "field-value", "schema is '2'"),
        ("schema = 1", "schema = true", "field-type", "schema is a boolean"),
        ('name = "pytorch-cuda"', 'name = "../etc"', "field-value", "name is '../etc'"),
        ('name = "pytorch-cuda"\n', "", "field-missing", "name is missing"),
        ("[base]", "[bases]", "image-field-unknown", "bases is not a field of an image; there is"),
        ("apt_snapshot", "apt_snapshop", "image-field-unknown", "there is apt_snapshot"),
        ("debian:bookworm", "https://x/y z", "field-value", "base.image is 'https://x/y z'"),
        ("20250520T000000Z", "today", "field-value", "base.apt_snapshot is 'today'"),
        ('"git"', '"git; rm -rf /"', "field-value", "base.apt[2] is 'git; rm -rf /'"),
        ('"git"', '"tini"', "duplicate", "base.apt holds 'tini' twice"),
        ('"3.11"', "3.11", "field-type", "python.version is a number and must be a string"),
        ('"3.11"', '"3.11.4"', "field-value", "python.version is '3.11.4'"),
        ('"2.8.0"', '"2.8"', "field-value", "torch.version is '2.8'"),
        ('["torchvision"]', '["torchtext"]', "field-value", "torch.companions[0] is 'torchtext'"),
        ('["cu128", "cu126"]', "[]", "field-missing", "torch.backends is missing"),
        ('["cu128", "cu126"]', '"cu128"', "field-type", "torch.backends is a string"),
        ('["cu128", "cu126"]', '["rocm6"]', "field-value", "torch.backends[0] is 'rocm6'"),
        ('"525.60.13"', '"525"', "field-value", "target.min_driver is '525'"),
        ('"index"]', '"conda"]', "field-value", "target.channels[1] is 'conda'"),
        ('"jupyterlab"', '"jupyterlab @ https://x/y.whl"', "field-value", "without a URL"),
        ('"jupyterlab"', '"--index-url=https://x"', "field-value", "packages.pinned[1]"),
        ('"jupyterlab"', '"-e ."', "field-value", "packages.pinned[1]"),
        ('"jupyterlab"', '"torch>=2"', "image-package-decided", "'torch>=2'"),
        ('"jupyterlab"', '"NVIDIA_nccl.cu12"', "image-package-decided", "nvidia-nccl-cu12"),
        ("uid = 1000", "uid = 0", "field-value", "runtime.user.uid is '0'"),
        ('"keys-only"', '"password"', "field-value", "one of keys-only, off"),
        ('"token-required"', '"none"', "field-value", "one of token-required, off"),
        ("shm_min_mb = 1024", "shm_min_mb = 1e3", "field-type", "runtime.shm_min_mb is a number"),
        ("shm_min_mb = 1024", "root = true", "image-field-unknown", "runtime.root"),
        ("schema = 1", "schema = = 1", "image-not-toml", "not valid TOML"),
        ("schema = 1", "schema = 1 # " + "x" * (1 << 18), "field-too-long", "262"),
    ],
)
def test_what_is_wrong_is_named_with_its_value(old: str, new: str, key: str, said: str) -> None:
    assert old in WHOLE
    with pytest.raises(Invalid) as caught:
        definition.parse(WHOLE.replace(old, new, 1))
    assert caught.value.key == key
    assert said in str(caught.value)
    expected = str(caught.value.params.get("expected", "a string"))
    assert expected in PHRASES or expected.startswith(("one of ", "a whole number from "))
    assert not caught.value.message("zh").isascii()


def tables(data: dict[str, Any]) -> str:
    """TOML of a definition, in the order of its dict."""
    lines = [f"{key} = {value!r}" for key, value in data.items() if not isinstance(value, dict)]
    for key, value in data.items():
        if isinstance(value, dict):
            lines.append(f"[{key}]")
            for name, one in value.items():
                if isinstance(one, dict):
                    inner = ", ".join(f"{k} = {v!r}" for k, v in one.items())
                    lines.append(f"{name} = {{ {inner} }}")
                else:
                    lines.append(f"{name} = {one!r}")
    return "\n".join(lines)


@settings(max_examples=50, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_a_file_says_nothing(random: Any) -> None:
    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: shuffled(value[key]) for key in random.sample(list(value), len(value))}
        if isinstance(value, list):
            return random.sample(value, len(value))
        return value

    turned = tables(shuffled(tomllib.loads(WHOLE)))
    assert definition.parse(turned) == definition.parse(WHOLE)


# ---------------------------------------------------------------- against the matrix


def test_companions_are_paired_by_the_matrix() -> None:
    """torchaudio 2.11 declares no torch at all, and torchvision 0.29 takes any newer one."""
    both = WHOLE.replace('["torchvision"]', '["torchvision", "torchaudio"]')
    found = definition.requirements(PACKAGED, definition.parse(both))
    assert found[:3] == ("torch==2.8.0", "torchaudio==2.8.0", "torchvision==0.23.0")
    newer = both.replace('"2.8.0"', '"2.13.0"')
    found = definition.requirements(PACKAGED, definition.parse(newer))
    assert found[:3] == ("torch==2.13.0", "torchaudio==2.11.*", "torchvision==0.28.0")
    assert found[3:] == ("jupyterlab", "numpy>=2,<3", "tensorboard")


def test_a_definition_that_could_not_work_is_refused_before_anything_is_built() -> None:
    good = definition.check(PACKAGED, definition.parse(WHOLE), "2.36", "x86_64")
    assert {backend: one.choice.cuda for backend, one in good.items() if one.choice} == {
        "cu126": "cu126",
        "cu128": "cu128",
    }
    newer = WHOLE.replace('"2.8.0"', '"2.14.1"').replace('["cu128", "cu126"]', '["cu130"]')
    with pytest.raises(DoesNotFit) as caught:
        definition.check(PACKAGED, definition.parse(newer), "2.36", "x86_64")
    assert "'gpu'" in str(caught.value)
    assert "V100 (sm_70)" in str(caught.value)
    assert "cu126" in str(caught.value)
    assert "改用 cu126" in caught.value.message("zh")
    with pytest.raises(Missing) as missing:
        definition.check(
            PACKAGED, definition.parse(WHOLE.replace('"2.8.0"', '"9.9.9"')), "2.36", "x86_64"
        )
    assert "9.9.9" in str(missing.value)


def test_the_built_in_images_work_where_they_say() -> None:
    found = {one.id: one for one in definition.built_in()}
    assert set(found) == {"pytorch-2.13-cpu", "pytorch-cuda-2.8", "pytorch-cuda-2.7"}
    files = resources.files("danlu.images") / "builtin"
    names = {file.name for file in files.iterdir() if file.name.endswith(".toml")}
    assert names == {f"{one}.toml" for one in found}
    for one in found.values():
        assert definition.check(PACKAGED, one, "2.36", "x86_64").keys() == set(one.backends)
        assert {"git", "openssh-server", "tini"} <= set(one.apt)
        wanted = {definition.normal(name.split(">")[0]) for name in one.packages}
        assert {"jupyterlab", "tensorboard", "pandas", "matplotlib", "seaborn"} <= wanted
        assert {"jupyter-resource-usage", "jupyter-server-proxy"} <= wanted
        assert (one.runtime.uid, one.runtime.gid, one.runtime.user) == (1000, 100, "ma-user")
    assert (found["pytorch-cuda-2.8"].torch, found["pytorch-cuda-2.8"].backends) == (
        "2.8.0",
        ("cu128",),
    )
    assert {"V100", "B200"} <= set(found["pytorch-cuda-2.8"].gpus)
    assert (found["pytorch-cuda-2.7"].torch, found["pytorch-cuda-2.7"].backends) == (
        "2.7.1",
        ("cu126",),
    )


def test_a_definition_is_written_as_it_was_read() -> None:
    for one in definition.built_in():
        assert definition.parse(definition.text(one, "two\nlines")) == one
    odd = replace(one, gpus=('NVIDIA "odd" \\ GPU',), companions=(), packages=(), apt=())
    assert definition.parse(definition.text(odd)) == odd
