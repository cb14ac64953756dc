"""From what uv resolved to the wheels of a lock: one a package, the best for the target."""

from __future__ import annotations

from typing import Any

import pytest

from danlu.images import pylock
from danlu.images.pylock import Target
from danlu.model.errors import Invalid, PlatformError, Refused

HERE = Target("3.11", "2.28", "x86_64")
SHA = "5a" * 32


def package(name: str, version: str, *filenames: str, marker: str = "") -> str:
    listed = ", ".join(
        f'{{ url = "https://x/{i}/{name}", hashes = {{ sha256 = "{SHA}" }} }}'
        for i, name in enumerate(filenames)
    )
    extra = f'marker = "{marker}"\n' if marker else ""
    return f'[[packages]]\nname = "{name}"\nversion = "{version}"\n{extra}wheels = [{listed}]\n'


def chosen(text: str, target: Target = HERE) -> list[str]:
    return [one.filename for one in pylock.wheels(f'lock-version = "1.0"\n{text}', target)]


A_PURE = "a-1.0-py3-none-any.whl"
A_ABI3 = "a-1.0-cp37-abi3-manylinux2014_x86_64.whl"
A_OWN = "a-1.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"
A_NEWER = "a-1.0-cp311-cp311-manylinux_2_28_x86_64.whl"
A_312 = "a-1.0-cp312-cp312-manylinux_2_17_x86_64.whl"
A_ARM = "a-1.0-cp311-cp311-manylinux_2_17_aarch64.whl"
A_MUSL = "a-1.0-cp311-cp311-musllinux_1_2_x86_64.whl"
A_OLD = "a-1.0-cp311-cp311-manylinux1_x86_64.whl"
A_FREE = "a-1.0-cp313-cp313t-manylinux_2_28_x86_64.whl"


@pytest.mark.parametrize(
    ("offered", "target", "expected"),
    [
        ([A_PURE, A_ABI3, A_OWN, A_NEWER], HERE, A_NEWER),
        ([A_PURE, A_ABI3, A_OWN, A_NEWER], Target("3.11", "2.27", "x86_64"), A_OWN),
        ([A_PURE, A_ABI3, A_312], HERE, A_ABI3),
        ([A_PURE, A_MUSL, A_ARM], HERE, A_PURE),
        ([A_PURE, A_OLD], HERE, A_OLD),
        ([A_ARM, A_OWN], Target("3.11", "2.36", "aarch64"), A_ARM),
        ([A_OWN, A_312], Target("3.12", "2.36", "x86_64"), A_312),
        ([A_FREE, A_PURE], Target("3.13t", "2.36", "x86_64"), A_FREE),
        ([A_FREE, A_PURE], Target("3.13", "2.36", "x86_64"), A_PURE),
        ([A_ABI3, A_PURE], Target("3.13t", "2.36", "x86_64"), A_PURE),
    ],
)
def test_the_best_wheel_is_taken(offered: list[str], target: Target, expected: str) -> None:
    assert chosen(package("a", "1.0", *offered), target) == [expected]
    assert chosen(package("a", "1.0", *reversed(offered)), target) == [expected]


def test_names_are_normal_and_in_order_and_nothing_of_a_url_stays() -> None:
    text = package("Typing_Extensions", "4.15.0", "typing_extensions-4.15.0-py3-none-any.whl")
    text += package("a", "1.0", A_PURE)
    first, second = pylock.wheels(text, HERE)
    assert (first.name, second.name) == ("a", "typing-extensions")
    assert second.sha256 == SHA
    local = package(
        "torch", "2.13.0+cpu", "torch-2.13.0%2Bcpu-cp311-cp311-manylinux_2_28_x86_64.whl"
    )
    assert "+cpu" in chosen(local)[0]


def test_what_is_for_other_systems_is_left_out() -> None:
    text = package("w", "1", "w-1-py3-none-any.whl", marker="sys_platform == 'win32'")
    text += package("a", "1.0", A_PURE, marker="python_version < '3.12' and os_name == 'posix'")
    text += package("n", "1", "n-1-py3-none-any.whl", marker="platform_machine == 'aarch64'")
    assert chosen(text) == [A_PURE]
    assert chosen(text, Target("3.12", "2.36", "aarch64")) == ["n-1-py3-none-any.whl"]


def test_a_local_wheel_has_the_hash_that_we_give_it() -> None:
    text = f'[[packages]]\nname = "a"\nversion = "1.0"\nwheels = [{{ path = "/opt/{A_PURE}" }}]\n'
    with pytest.raises(Refused) as caught:
        pylock.wheels(text, HERE)
    assert (caught.value.key, A_PURE in str(caught.value)) == ("image-no-hash", True)
    (found,) = pylock.wheels(text, HERE, {A_PURE: SHA})
    assert (found.filename, found.sha256) == (A_PURE, SHA)


@pytest.mark.parametrize(
    ("text", "kind", "key"),
    [
        (package("a", "1.0", A_ARM, A_312), Refused, "image-no-wheel"),
        (package("a", "1.0", "a-1.0.tar.gz"), Refused, "image-no-wheel"),
        ('[[packages]]\nname = "a"\nversion = "1.0"\nsdist = { url = "x" }\n', Refused,
         "image-no-wheel"),
        ("packages = 1", Invalid, "image-pylock"),
        ("[[packages]\n", Invalid, "image-pylock"),
        ("", Invalid, "image-pylock"),
        (package("a", "1.0", A_PURE, marker="nonsense"), Invalid, "image-pylock"),
        ("[[packages]]\nname = 'a'\n", Invalid, "image-pylock"),
    ],
)  # fmt: skip
def test_what_cannot_be_locked_is_named(text: str, kind: Any, key: str) -> None:
    with pytest.raises(PlatformError) as caught:
        pylock.wheels(text, HERE)
    assert isinstance(caught.value, kind)
    assert caught.value.key == key
