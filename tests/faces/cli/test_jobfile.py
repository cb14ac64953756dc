"""Job files: what is read, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from danlu.faces.cli import jobfile
from danlu.faces.cli.failure import MISSING, USAGE, Failure

YAML = """\
metadata: {name: train}
algorithm:
  code_dir: ./src
  boot_file: train.py
  parameters:
    - {name: lr, value: 0.10}
    - {name: n, value: 007}
    - {name: big, value: 12}
    - {name: yes, value: yes}
    - {name: flag, value: true}
    - {name: date, value: 2026-01-31}
    - {name: sci, value: 1e-3}
    - {name: text, value: "a: b"}
  environments: {A: 1, B: off, C: ""}
  inputs:
    - {name: data, remote: {obs: {obs_url: data/mnist}}}
    - {name: far, remote: {obs: {obs_url: obs://b/k/}}}
    - {name: bucket, remote: {obs: {obs_url: /bucket/key/}}}
spec:
  resource: {flavor_id: a, node_count: 2}
"""


def read(path: Path, text: str | bytes, name: str = "job.yaml") -> dict[str, Any]:
    file = path / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return jobfile.read(str(file))


def test_texts_stay_as_they_were_written(tmp_path: Path) -> None:
    body = read(tmp_path, YAML)
    values = {one["name"]: one["value"] for one in body["algorithm"]["parameters"]}
    assert values == {
        "lr": "0.10", "n": "007", "big": "12", "yes": "yes", "flag": "true",
        "date": "2026-01-31", "sci": "1e-3", "text": "a: b",
    }  # fmt: skip
    assert body["algorithm"]["environments"] == {"A": "1", "B": "off", "C": ""}
    assert body["spec"]["resource"]["node_count"] == 2


def test_json_reads_alike(tmp_path: Path) -> None:
    text = (
        '{"algorithm": {"parameters": [{"name": "lr", "value": 0.10}, {"name": "n", "value": 7}]}}'
    )
    body = read(tmp_path, text, "job.json")
    assert [one["value"] for one in body["algorithm"]["parameters"]] == ["0.10", "7"]
    assert read(tmp_path, text) == body  # JSON is YAML


def test_which_paths_are_of_this_machine(tmp_path: Path) -> None:
    found = [obs["obs_url"] for _, obs in jobfile.local_places(read(tmp_path, YAML))]
    assert found == ["data/mnist"]
    assert jobfile.is_local("./src")
    assert not jobfile.is_local("obs://b/k/")
    assert not jobfile.is_local("/bucket/key/")
    assert not jobfile.is_local("")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: &x 1\nb: *x", "aliases"),
        ("a: 1\na: 2", "twice"),
        ("- 1", "object"),
        ("", "object"),
        ("a: !!python/object/apply:os.system [id]", "constructor"),
        ("1: 2", "not a text"),
        ("a: [", "parsing"),
        ("a: b: c", "mapping"),
        (b"\xff\xfe", "decode"),
        ("a: \x07", "characters"),
        ("[" * 5000, "cannot be understood"),
    ],
)
def test_what_yaml_is_refused(tmp_path: Path, text: str | bytes, words: str) -> None:
    with pytest.raises(Failure, match=words) as caught:
        read(tmp_path, text)
    assert caught.value.exit_status == USAGE


@pytest.mark.parametrize(
    "text", ["{", '{"a": 1, "a": 2}', "[]", "NaN", '{"a": Infinity}', "[" * 9999]
)
def test_what_json_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(Failure, match="cannot be understood"):
        read(tmp_path, text, "job.json")


def test_a_file_is_bounded(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="larger"):
        read(tmp_path, "a: " + "x" * jobfile.MAX_BYTES)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(Failure, match="No such file") as caught:
        jobfile.read("/nowhere/job.yaml")
    assert caught.value.exit_status == MISSING
