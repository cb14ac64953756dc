"""The names of notebooks' origins."""

from __future__ import annotations

import pytest

from danlu.faces.lab.origin import origins
from danlu.model.errors import Invalid, Refused

ID = "0b3c1a9e-6f0e-4f5a-9a55-1d2f7c0e8b11"


@pytest.mark.parametrize(
    ("setting", "api", "asked", "url"),
    [
        ("", "http://127.0.0.1:8778", "127.0.0.1:8778", "http://nb-{id}.localhost:8778"),
        ("", "http://127.0.0.1:8778", "localhost:9000", "http://nb-{id}.localhost:9000"),
        ("", "http://127.0.0.1:8778", "localhost", "http://nb-{id}.localhost"),
        ("nb.a.io", "https://a.io:8443", "a.io:8443", "https://nb-{id}.nb.a.io:8443"),
        ("nb.a.io", "https://a.io", "a.io", "https://nb-{id}.nb.a.io"),
        ("https://NB.a.io", "http://0.0.0.0:8778", "a.io", "https://nb-{id}.nb.a.io"),
        ("https://nb.a.io:444", "http://10.0.0.1:1", "a.io", "https://nb-{id}.nb.a.io:444"),
    ],
)
def test_addresses(setting: str, api: str, asked: str, url: str) -> None:
    found = origins(setting, api)
    assert found.url(ID, asked) == url.format(id=ID)
    host = url.format(id=ID).split("://")[1].partition(":")[0]
    assert found.notebook(host) == ID
    assert found.secure == url.startswith("https")


def test_without_a_domain_other_machines_are_told_what_to_set() -> None:
    with pytest.raises(Refused, match="notebook_domain"):
        origins("", "http://10.0.0.1:8778").url(ID, "10.0.0.1:8778")


@pytest.mark.parametrize("setting", ["a b", "ftp://a.io", "a.io/x", "me@a.io", "a..io", "https://",
                                     "a.io:x", "http://[::1]", "-"])  # fmt: skip
def test_what_is_no_domain_stops_the_start(setting: str) -> None:
    with pytest.raises(Invalid, match="notebook_domain"):
        origins(setting, "http://127.0.0.1:8778")


@pytest.mark.parametrize(
    "name",
    [
        "localhost",
        "nb-.localhost",
        "nb-_x.localhost",
        "nb-a-.localhost",
        "nb-a.b.localhost",
        f"nb-{'a' * 61}.localhost",
    ],
)
def test_what_is_no_notebooks_name(name: str) -> None:
    assert origins("", "http://127.0.0.1:1").notebook(name) is None
