"""ModelArts' calls on images: the built-in ones, a registered one, and what is refused."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from danlu.images import known, lock
from danlu.images.store import ImageStore
from tests.faces.http.live import Live, create_body
from tests.images import small

IMAGES = "/v1/{p}/images"


@pytest.fixture
def text(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A lock that no other test has: the tests share one server, and what is the same is one."""
    own = hashlib.sha256(request.node.name.encode()).hexdigest()[:8]
    wheels = [
        small.wheel(tmp_path, "torch", "2.13.0+cpu"),
        small.wheel(tmp_path, f"own{own}", "1.0"),
    ]
    return lock.canonical(small.locked(wheels))


def register(shared: Live, name: str, text: str) -> Any:
    return shared.call("POST", IMAGES, {"danlu": {"name": name, "lock": text}, "description": "d"})


def test_the_built_in_images_are_listed_page_by_page(shared: Live) -> None:
    whole = shared.call("GET", f"{IMAGES}?type=BUILD_IN").json
    assert {one["name"] for one in whole["data"]} >= {"pytorch-2.13-cpu", "pytorch-cuda-2.8"}
    page = shared.call("GET", f"{IMAGES}?type=BUILD_IN&limit=1&offset=1").json
    assert page["data"] == whole["data"][1:2]
    assert (page["total"], page["pages"], page["current"]) == (whole["total"], whole["total"], 2)
    named = shared.call("GET", f"{IMAGES}?name=cuda-2.8").json["data"]
    assert [one["name"] for one in named] == ["pytorch-cuda-2.8"]
    assert shared.call("GET", f"{IMAGES}?colour=red").status == 400


def test_an_image_is_registered_shown_and_deleted(shared: Live, text: str) -> None:
    made = register(shared, "mine", text)
    assert made.status == 200
    assert made.json["id"] == lock.image_id(lock.parse(text))
    assert (made.json["type"], made.json["description"]) == ("DEDICATED", "d")
    for word in (
        "mine",
        made.json["id"],
        made.json["id"].replace(":", "%3A"),
        made.json["id"][:19],
    ):
        assert shared.call("GET", f"{IMAGES}/{word}").json == made.json
    assert register(shared, "mine", text).json == made.json

    assert shared.call("DELETE", f"{IMAGES}/mine").status == 200
    assert shared.call("GET", f"{IMAGES}/mine").status == 404


def test_what_cannot_be_registered_is_refused_by_field(shared: Live, text: str) -> None:
    for body, field in (
        ({"swr_path": "swr.example.org/a/b:1"}, "swr_path"),
        ({}, "danlu"),
        ({"danlu": {"name": "x"}}, "lock"),
        ({"danlu": {"name": "../x", "lock": text}}, "name"),
        ({"danlu": {"name": "x", "lock": text.replace('"cpu"', '"gpu" ')}}, "lock"),
        ({"danlu": {"name": "x", "lock": "[" * 5000}}, "lock"),
    ):
        answer = shared.call("POST", IMAGES, body)
        assert answer.status == 400, answer.body
        assert field in answer.json["error_msg"]
    assert register(shared, "pytorch-2.13-cpu", text).status == 409


def test_a_built_in_image_cannot_be_deleted(shared: Live) -> None:
    answer = shared.call("DELETE", f"{IMAGES}/pytorch-2.13-cpu")
    assert answer.status == 409
    assert "pytorch-2.13-cpu" in answer.json["error_msg"]


def test_what_no_image_can_be_called_is_missing(shared: Live) -> None:
    for word in ("x" * 200, "..%2F..%2Fetc", "%00", "sha256%3A" + "g" * 64, "f" * 64):
        assert shared.call("GET", f"{IMAGES}/{word}").status == 404


def test_the_built_in_images_are_engines(shared: Live) -> None:
    items = shared.call("GET", "/v2/{p}/training-job-engines").json["items"]
    by_id = {one["engine_id"]: one for one in items}
    assert by_id["pytorch-cuda-2.8"]["engine_version"] == "pytorch_2.8.0-py_3.11"


def test_a_job_keeps_the_image_that_its_name_meant(shared: Live, text: str) -> None:
    """As an engine, as an image; what is of a registry is refused on this server."""
    image_id = register(shared, "kept", text).json["id"]
    for engine in ({"engine_id": "kept"}, {"image_url": "kept"}, {"image_url": image_id}):
        body = create_body("with-image")
        body["algorithm"]["engine"] = engine
        assert shared.call("POST", "/v2/{p}/training-jobs", body).status == 201
    body = create_body("with-image")
    body["algorithm"]["engine"] = {"image_url": "swr.example.org/team/torch:2.8"}
    answer = shared.call("POST", "/v2/{p}/training-jobs", body)
    assert answer.status == 400
    assert "swr.example.org/team/torch:2.8" in answer.json["error_msg"]


def test_names_are_a_project_s_own(shared: Live, text: str, tmp_path: Path) -> None:
    """The same name means each project's image; neither sees, uses or deletes the other's."""
    mine = register(shared, "ours", text).json["id"]
    workspace, key = shared.another("names")
    place = f"/v1/{workspace.id}/images"
    other = lock.canonical(small.locked([small.wheel(tmp_path, "torch", "2.12.0+cpu")]))

    def listed() -> list[str]:
        return [
            one["name"] for one in shared.call("GET", f"{place}?limit=500", key=key).json["data"]
        ]

    assert shared.call("GET", f"{place}/ours", key=key).status == 404
    assert shared.call("DELETE", f"{place}/ours", key=key).status == 404
    assert "ours" not in listed()
    body = create_body("with-theirs")
    body["algorithm"]["engine"] = {"engine_id": "ours"}
    jobs = f"/v2/{workspace.id}/training-jobs"
    assert shared.call("POST", jobs, body, key=key).status == 400

    made = shared.call("POST", place, {"danlu": {"name": "ours", "lock": other}}, key=key)
    assert made.status == 200, made.body
    assert made.json["id"] != mine
    assert "ours" in listed()
    assert shared.call("POST", jobs, body, key=key).status == 201
    assert shared.call("DELETE", f"{place}/ours", key=key).json["id"] == made.json["id"]
    assert shared.call("GET", f"{IMAGES}/ours").json["id"] == mine


def test_what_is_everybody_s_is_no_project_s_to_delete(shared: Live, text: str) -> None:
    store = ImageStore(Path(shared.running.settings.data) / "images")
    known.register(store, "for-all", lock.parse(text))
    workspace, key = shared.another("guest")
    assert shared.call("GET", f"/v1/{workspace.id}/images/for-all", key=key).status == 200
    assert shared.call("DELETE", f"/v1/{workspace.id}/images/for-all", key=key).status == 409
    # A name that is taken for everybody is nobody's own.
    other = text.replace('"matrix": "test"', '"matrix": "test2"')
    assert register(shared, "for-all", other).status == 409
