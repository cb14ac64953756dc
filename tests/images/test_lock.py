"""Locks: one text for one content, one id for one text, and nothing else in either."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from danlu.images import definition, lock, matrix
from danlu.images.definition import Runtime
from danlu.images.lock import AptPackage, Lock, Wheel
from danlu.model.errors import Invalid

A, B, C = ("".join(pair) * 32 for pair in ("a1", "b2", "c3"))
RUNTIME = Runtime(1000, 100, "ma-user", "keys-only", "token-required", 1024)
SMALL = Lock(
    "cpu",
    "x86_64",
    "3.11",
    "2026.11.30",
    (
        Wheel("torch", "2.13.0+cpu", "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl", A),
        Wheel("numpy", "2.4.0", "numpy-2.4.0-cp311-cp311-manylinux_2_27_x86_64.whl", B),
    ),
    RUNTIME,
    f"sha256:{C}",
    (AptPackage("tini", "0.19.0-1+b3", C), AptPackage("git", "1:2.39.5-0+deb12u2", A)),
    {"LANG": "C.UTF-8"},
    {"start": B},
)

GOLDEN = f"""\
{{
 "apt": [
  {{
   "name": "git",
   "sha256": "{A}",
   "version": "1:2.39.5-0+deb12u2"
  }},
  {{
   "name": "tini",
   "sha256": "{C}",
   "version": "0.19.0-1+b3"
  }}
 ],
 "arch": "x86_64",
 "backend": "cpu",
 "base": "sha256:{C}",
 "entry": {{
  "start": "{B}"
 }},
 "env": {{
  "LANG": "C.UTF-8"
 }},
 "matrix": "2026.11.30",
 "python": "3.11",
 "runtime": {{
  "gid": 100,
  "jupyter_auth": "token-required",
  "shm_min_mb": 1024,
  "ssh": "keys-only",
  "uid": 1000,
  "user": "ma-user"
 }},
 "schema": 1,
 "wheels": [
  {{
   "filename": "numpy-2.4.0-cp311-cp311-manylinux_2_27_x86_64.whl",
   "name": "numpy",
   "sha256": "{B}",
   "version": "2.4.0"
  }},
  {{
   "filename": "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl",
   "name": "torch",
   "sha256": "{A}",
   "version": "2.13.0+cpu"
  }}
 ]
}}
"""
GOLDEN_ID = "sha256:0c0161caf72ebe35e3b63398a742af1fe681a48ba4130fc0cbc58e664149ea7a"


def test_the_text_and_the_id_are_these_for_ever() -> None:
    """Ids are stored with jobs: a change of the text's form would make every one of them wrong."""
    assert lock.canonical(SMALL) == GOLDEN
    assert lock.image_id(SMALL) == GOLDEN_ID
    assert lock.canonical(lock.parse(GOLDEN)) == GOLDEN


HASHES = st.text("0123456789abcdef", min_size=64, max_size=64)
NAMES = st.from_regex(r"[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,4})?", fullmatch=True)
VERSIONS = st.from_regex(r"[1-9]\.[0-9]{1,2}(\.[0-9])?(\+cpu)?", fullmatch=True)


@st.composite
def wheels(draw: st.DrawFn) -> Wheel:
    name, version = draw(NAMES), draw(VERSIONS)
    filename = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    return Wheel(name, version, filename, draw(HASHES))


@st.composite
def locks(draw: st.DrawFn) -> Lock:
    apt = draw(st.lists(st.builds(AptPackage, NAMES, VERSIONS, HASHES), max_size=3,
                        unique_by=lambda one: one.name))  # fmt: skip
    return Lock(
        draw(st.sampled_from(["cpu", "cu128"])),
        "x86_64",
        "3.11",
        "2026.11.30",
        tuple(draw(st.lists(wheels(), max_size=6, unique_by=lambda one: one.name))),
        RUNTIME,
        f"sha256:{draw(HASHES)}" if apt else "",
        tuple(apt),
        draw(st.dictionaries(st.from_regex(r"[A-Z_]{1,6}", fullmatch=True), st.text(max_size=8),
                             max_size=3)),
        draw(st.dictionaries(NAMES, HASHES, max_size=2)),
    )  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(locks(), st.randoms(use_true_random=False))
def test_the_order_of_input_does_not_matter(one: Lock, random: Any) -> None:
    def turned(items: Any) -> Any:
        shuffled = random.sample(list(items), len(items))
        return dict(shuffled) if isinstance(items, dict) else tuple(shuffled)

    other = replace(
        one,
        wheels=turned(one.wheels),
        apt=turned(one.apt),
        env=dict(turned(tuple(one.env.items()))),
        entry=dict(turned(tuple(one.entry.items()))),
    )
    assert lock.image_id(other) == lock.image_id(one)
    text = lock.canonical(one)
    assert lock.canonical(lock.parse(text)) == text


@settings(max_examples=150, deadline=None)
@given(locks(), st.data())
def test_every_part_of_the_content_is_in_the_id(one: Lock, data: st.DataObject) -> None:
    """One character of one hash, one version, one variable: another image."""
    leaves = list(_leaves(json.loads(lock.canonical(one))))
    path = data.draw(st.sampled_from([leaf for leaf in leaves if leaf != ("schema",)]))
    changed = json.loads(lock.canonical(one))
    place = changed
    for step in path[:-1]:
        place = place[step]
    value = place[path[-1]]
    place[path[-1]] = value + 1 if isinstance(value, int) else f"{value[:-1]}{_other(value)}"
    text = json.dumps(changed, sort_keys=True, indent=1) + "\n"
    try:
        other = lock.parse(text)
    except Invalid:
        return  # no lock at all, which is no other image either
    assert lock.image_id(other) != lock.image_id(one)


def _other(value: str) -> str:
    return "1" if value.endswith("0") else "0"


def _leaves(value: Any, at: tuple[Any, ...] = ()) -> Any:
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _leaves(one, (*at, key))
    elif isinstance(value, list):
        for i, one in enumerate(value):
            yield from _leaves(one, (*at, i))
    else:
        yield at


@given(st.sampled_from(SMALL.wheels), HASHES)
def test_a_hash_of_one_wheel_is_a_change_of_the_id(wheel: Wheel, sha256: str) -> None:
    """(images.md 20) One byte of a wheel."""
    others = tuple(one for one in SMALL.wheels if one != wheel)
    changed = replace(SMALL, wheels=(*others, replace(wheel, sha256=sha256)))
    assert (lock.image_id(changed) == lock.image_id(SMALL)) == (sha256 == wheel.sha256)


def test_an_id_holds_no_place_and_no_time() -> None:
    for word in ("http", "://", "/", "\\\\", "2026-11", "file"):
        text = lock.canonical(replace(SMALL, env={})).replace('"filename"', "")
        assert word not in text


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"backend": "cu 128"}, "field-value", "lock.backend is 'cu 128'"),
    ({"python": "/usr/bin/python3"}, "field-value", "lock.python"),
    ({"base": "debian:bookworm"}, "field-value", "lock.base is 'debian:bookworm'"),
    ({"base": ""}, "field-missing", "lock.base is missing"),
    ({"env": {"A B": "1"}}, "field-value", "lock.env is 'A B'"),
    ({"env": {"A": 1}}, "field-type", "lock.env.A"),
    ({"entry": {"/bin/start": A}}, "field-value", "lock.entry is '/bin/start'"),
    ({"entry": {"start": "md5"}}, "field-value", "lock.entry.start is 'md5'"),
    ({"apt": (AptPackage("git", "1.0", A), AptPackage("git", "1.1", B))}, "duplicate", "'git'"),
    ({"apt": (AptPackage("git", "1.0", A[:-1]),)}, "field-value", "lock.apt.git.sha256"),
    ({"wheels": SMALL.wheels * 2}, "duplicate", "lock.wheels holds 'torch' twice"),
]
WRONG_WHEELS = [
    (Wheel("Torch", "2.8.0", "Torch-2.8.0-py3-none-any.whl", A), "lock.wheels.Torch"),
    (Wheel("torch", "2.8.0", "https://x/torch-2.8.0-py3-none-any.whl", A), "torch.filename"),
    (Wheel("torch", "2.8.0", "../torch-2.8.0-py3-none-any.whl", A), "torch.filename"),
    (Wheel("torch", "2.8.0", "torch-2.8.0.tar.gz", A), "torch.filename"),
    (Wheel("torch", "2.8.0", "torch-2.7.1-cp311-cp311-linux_x86_64.whl", A), "torch.filename"),
    (Wheel("torch", "2.8.0", "numpy-2.8.0-cp311-cp311-linux_x86_64.whl", A), "torch.filename"),
    (Wheel("torch", "2.8.0", "torch-2.8.0-py3-none-any.whl", A.upper()), "torch.sha256"),
    (Wheel("torch", "2.8.0", "torch-2.8.0-py3-none-any.whl", ""), "torch.sha256"),
]


@pytest.mark.parametrize(
    ("change", "key", "said"),
    [*BAD, *(({"wheels": (wheel,)}, "field-value", said) for wheel, said in WRONG_WHEELS)],
)
def test_what_a_lock_may_not_hold(change: dict[str, Any], key: str, said: str) -> None:
    with pytest.raises(Invalid) as caught:
        lock.check(replace(SMALL, **change))
    assert caught.value.key == key
    assert said in str(caught.value)
    assert not caught.value.message("zh").isascii()


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", "null", GOLDEN.strip(), GOLDEN.replace('"schema": 1', '"schema": 2'),
        GOLDEN.replace('"arch"', '"when": 1,\n "arch"'), GOLDEN.replace("  ", " "),
        GOLDEN.replace('"uid": 1000,\n', ""), "[" * 100_000,
    ],
)  # fmt: skip
def test_only_a_canonical_text_is_a_lock(text: str) -> None:
    with pytest.raises(Invalid):
        lock.parse(text)


def test_the_lock_of_a_definition_has_its_python_and_its_runtime() -> None:
    found = next(one for one in definition.built_in() if one.id == "pytorch-2.13-cpu")
    made = lock.of(found, matrix.packaged(), "cpu", "x86_64", SMALL.wheels[::-1])
    assert (made.python, made.matrix) == ("3.11", matrix.packaged().version)
    assert made.runtime == found.runtime
    with pytest.raises(Invalid):
        lock.of(found, matrix.packaged(), "cpu", "x86_64", SMALL.wheels * 2)


@pytest.mark.parametrize("part", ["env", "entry"])
def test_a_part_of_another_kind_is_told(part: str) -> None:
    data = json.loads(lock.canonical(SMALL))
    with pytest.raises(Invalid):
        lock.parse(json.dumps({**data, part: ["x"]}, sort_keys=True, indent=1) + "\n")
