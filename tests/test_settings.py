"""Where settings come from, and what stops the start."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from danlu.model.errors import Invalid
from danlu.model.resources import GIB
from danlu.settings import Settings, check_environment, describe, load


def test_flags_beat_the_environment_beats_the_file_beats_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "danlu.toml").write_text('port = 1\nregion = "file"\nmax_queued = 5\n')
    found = load(tmp_path, {"port": 3, "host": None}, {"DANLU_PORT": "2", "DANLU_REGION": "env"})
    assert (found.settings.port, found.settings.region, found.settings.max_queued) == (3, "env", 5)
    assert found.settings.host == "127.0.0.1"
    sources = {name: found.sources[name] for name in ("port", "region", "max_queued", "host")}
    assert sources == {
        "port": "flag",
        "region": "environment",
        "max_queued": "file",
        "host": "default",
    }


@pytest.mark.parametrize(
    ("toml", "environ"), [("prot = 1\n", {}), ("", {"DANLU_PROT": "1"}), ("[prot]\n", {})]
)
def test_an_unknown_key_stops_the_start_and_a_near_one_is_named(
    tmp_path: Path, toml: str, environ: dict[str, str]
) -> None:
    (tmp_path / "danlu.toml").write_text(toml)
    with pytest.raises(Invalid, match="did you mean 'port'"):
        load(tmp_path, {}, environ)


def test_variables_of_the_command_line_and_of_jobs_are_not_settings(tmp_path: Path) -> None:
    load(tmp_path, {}, {"DANLU_SERVER": "x", "DANLU_DATA": "y", "DANLU_JOB_ID": "z", "HOME": "/"})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("port", "70000"),
        ("port", "x"),
        ("port", "-1"),
        ("insecure_bind", "perhaps"),
        ("max_queued", "0"),
        ("log_level", "loud"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named(tmp_path: Path, key: str, value: str) -> None:
    """(case 83)"""
    with pytest.raises(Invalid) as caught:
        load(tmp_path, {}, {f"DANLU_{key.upper()}": value})
    assert key in str(caught.value)
    assert value in str(caught.value)


@pytest.mark.parametrize("content", [b"port = ", b"\xff\xfe", b"port = 1\nport = 2"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "danlu.toml").write_bytes(content)
    with pytest.raises(Invalid, match=r"danlu\.toml"):
        load(tmp_path, {}, {})


def test_flavors_come_from_tables(tmp_path: Path) -> None:
    (tmp_path / "danlu.toml").write_text(
        '[flavors."modelarts.p3.large"]\ncpus = 8\nmemory_gib = 1.5\ngpus = 1\n'
        'gpu_model = "V100"\nprice_per_hour = 2.5\n'
    )
    (flavor,) = load(tmp_path, {}, {}).settings.flavors
    assert (flavor.id, flavor.shape.cpus, flavor.shape.memory_bytes) == (
        "modelarts.p3.large",
        8,
        3 * GIB // 2,
    )
    assert (flavor.shape.gpus, flavor.shape.gpu_model, flavor.price_per_hour) == (1, "V100", 2.5)


@pytest.mark.parametrize(
    "table",
    [
        "cpus = 1",
        'cpus = "1"\nmemory_gib = 1',
        "cpus = 1\nmemory_gib = 1\ngpu = 1",
        "cpus = 0.5\nmemory_gib = 1",
        "cpus = 0\nmemory_gib = 1",
        "cpus = true\nmemory_gib = 1",
        "cpus = 1\nmemory_gib = -1",
        "cpus = 1\nmemory_gib = inf",
        "cpus = 1\nmemory_gib = nan",
        "cpus = 1\nmemory_gib = 1\ngpus = 1.5",
        "cpus = 1\nmemory_gib = 1\nprice_per_hour = -1",
    ],
)
def test_a_flavor_with_a_wrong_field_is_refused(tmp_path: Path, table: str) -> None:
    (tmp_path / "danlu.toml").write_text(f'[flavors."x"]\n{table}\n')
    with pytest.raises(Invalid, match=r"flavors\.x"):
        load(tmp_path, {}, {})


def test_every_setting_says_what_it_means_in_both_languages() -> None:
    english, chinese = describe(), describe("zh")
    assert english.keys() == {item.name for item in fields(Settings)}
    for name in english:
        assert english[name][1] != chinese[name][1]


def test_an_environment_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    loaded = load(tmp_path, {"default_environment": str(tmp_path / "nope")}, {}).settings
    with pytest.raises(Invalid, match=r"default_environment.*nope.*bin/python"):
        check_environment(loaded)
    check_environment(load(tmp_path, {}, {}).settings)
