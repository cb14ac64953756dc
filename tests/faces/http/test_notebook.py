"""Notebooks over the wire: ModelArts' calls, and our own."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from danlu.engines.memory_script import Script
from danlu.model.notebook import State
from danlu.wire.modelarts_notebook_reply import MODELARTS_STATUSES, STATUSES
from tests import ssh_keys
from tests.faces.http.live import PATIENCE_S, Answer, Live

HOUR_MS = 3_600_000
V1 = "/v1/{p}/notebooks"
KEYS = "/danlu/v1/{p}/keys"
OURS = "/danlu/v1/{p}/notebooks"
READY = Script(duration_s=None, ready_s=0.01)


@pytest.fixture(autouse=True)
def none_left(shared: Live) -> Iterator[None]:
    yield
    for one in shared.call("GET", V1).json["data"]:
        shared.call("DELETE", f"{V1}/{one['id']}")
    ends = time.monotonic() + PATIENCE_S
    while shared.call("GET", V1).json["total"]:
        assert time.monotonic() < ends
        time.sleep(0.02)


def named() -> str:
    return f"nb-{uuid.uuid4().hex[:8]}"


def create(shared: Live, name: str = "", script: Script = READY, **body: Any) -> Answer:
    name = name or named()
    shared.script(name, script)
    return shared.call("POST", V1, {"name": name, "flavor": "danlu.cpu.1u", **body})


def created(shared: Live, **body: Any) -> Any:
    answer = create(shared, **body)
    assert answer.status == 201, answer.body
    return answer.json


def until(shared: Live, notebook_id: str, *statuses: str) -> Any:
    ends = time.monotonic() + PATIENCE_S
    while True:
        found = shared.call("GET", f"{V1}/{notebook_id}").json
        if found["status"] in statuses:
            return found
        assert time.monotonic() < ends, found
        time.sleep(0.02)


def test_every_state_is_a_status_that_clients_know() -> None:
    assert set(STATUSES) == set(State)
    assert set(STATUSES.values()) <= set(MODELARTS_STATUSES)


def test_who_gets_in_over_ssh_is_said_at_the_start_and_changed_later(
    shared: Live, tmp_path: Path
) -> None:
    missing = create(shared, endpoints=[{"service": "SSH", "key_pair_names": ["hers"]}])
    assert missing.status == 400
    assert b"endpoints.key_pair_names" in missing.body
    assert b"'hers'" in missing.body
    for value in ("192.0.2.0/33", "example.com", "", "10.0.0"):
        odd = create(shared, endpoints=[{"service": "SSH", "allowed_access_ips": [value]}])
        assert odd.status == 400
        assert b"endpoints[0].allowed_access_ips[0]" in odd.body

    key = ssh_keys.make(tmp_path / "k")
    assert shared.call("POST", KEYS, {"public_key": key, "name": "k"}).status == 201
    networks = ["192.0.2.0/24", "2001:db8::/32"]
    ssh = {"service": "SSH", "key_pair_names": ["k"], "allowed_access_ips": networks}
    made = created(shared, endpoints=[ssh])
    assert made["endpoints"][0] == {**ssh, "uri": ""}
    place = f"{V1}/{made['id']}"
    until(shared, made["id"], "RUNNING")
    # What is not said stays.
    body = {"endpoints": [{"service": "SSH", "allowed_access_ips": []}]}
    changed = shared.call("PUT", place, body).json["endpoints"][0]
    assert (changed["key_pair_names"], changed["allowed_access_ips"]) == (["k"], [])
    assert shared.call("DELETE", f"{KEYS}/k").status == 200


def test_a_notebook_goes_through_its_life(shared: Live) -> None:
    made = created(shared, description="描述", endpoints=[{"service": "SSH"}])
    assert made["status"] == "CREATING"
    assert (made["lease"]["duration"], made["lease"]["type"]) == (HOUR_MS, "TIMING")
    assert made["action_progress"][0]["step"] == 1
    assert made["endpoints"][0]["uri"] == ""

    runs = until(shared, made["id"], "RUNNING")
    assert runs["token"] == ""
    assert runs["lease"]["enable"] is True
    assert runs["billing_items"] == ["COMPUTE"]
    assert runs["danlu"]["ends_at"] == runs["lease"]["create_at"] + HOUR_MS
    assert shared.call("POST", f"{V1}/{made['id']}/start").status == 409

    stopping = shared.call("POST", f"{V1}/{made['id']}/stop")
    assert (stopping.status, stopping.json["status"]) == (200, "STOPPING")
    stopped = until(shared, made["id"], "STOPPED")
    assert stopped["danlu"]["reason"] == "stopped by admin"
    changed = shared.call("PUT", f"{V1}/{made['id']}", {"flavor": "danlu.cpu.2u", "name": "other"})
    assert (changed.json["flavor"], changed.json["name"]) == ("danlu.cpu.2u", "other")
    shared.script("other", READY)
    started = shared.call("POST", f"{V1}/{made['id']}/start?duration={2 * HOUR_MS}&type=IDLE")
    assert started.json["status"] == "STARTING"
    again = until(shared, made["id"], "RUNNING")
    assert (again["lease"]["duration"], again["lease"]["type"]) == (2 * HOUR_MS, "IDLE")

    deleting = shared.call("DELETE", f"{V1}/{made['id']}")
    assert (deleting.status, deleting.json["status"]) == (200, "DELETING")


def test_a_renewal_counts_from_now_and_the_query_wins(shared: Live) -> None:
    made = created(shared, lease={"duration": HOUR_MS, "type": "IDLE"})
    before = until(shared, made["id"], "RUNNING")
    assert (before["lease"]["type"], before["danlu"]["idle"]["policy"]) == ("IDLE", "3600")
    lease = f"{V1}/{made['id']}/lease"

    wins = shared.call(
        "PATCH", f"{lease}?duration={3 * HOUR_MS}", {"duration": HOUR_MS, "type": "IDLE"}
    )
    assert (wins.json["duration"], wins.json["type"]) == (3 * HOUR_MS, "TIMING")
    assert wins.json["create_at"] >= before["lease"]["create_at"]
    assert shared.call("GET", lease).json == wins.json
    assert shared.call("PATCH", lease, {"duration": 2 * HOUR_MS}).json["duration"] == 2 * HOUR_MS
    idle = shared.call("PATCH", lease, {"duration": 2 * HOUR_MS, "type": "IDLE"})
    assert (idle.json["type"], idle.json["duration"]) == ("IDLE", 2 * HOUR_MS)


@pytest.mark.parametrize("duration", [HOUR_MS - 1, 72 * HOUR_MS + 1, -1])
def test_a_lease_has_bounds(shared: Live, duration: int) -> None:
    refused = create(shared, duration=duration)
    assert (refused.status, refused.key) == (400, "field-value")
    assert "duration" in refused.json["error_msg"]
    made = created(shared)
    for call in (f"/start?duration={duration}", f"/lease?duration={duration}"):
        method = "PATCH" if "lease" in call else "POST"
        assert shared.call(method, f"{V1}/{made['id']}{call}").status == 400


def test_lists_are_filtered_sorted_and_paged(shared: Live) -> None:
    names = sorted(named() for _ in range(3))
    for name in names:
        created(shared, name=name)

    found = shared.call("GET", f"{V1}?sort_key=name&sort_dir=ASC&limit=2&offset=1").json
    assert [one["name"] for one in found["data"]] == names[1:]
    assert (found["total"], found["pages"], found["size"]) == (3, 2, 2)
    assert shared.call("GET", f"{V1}?name={names[1]}").json["total"] == 1
    assert shared.call("GET", f"{V1}?status=FROZEN").json["total"] == 0
    assert shared.call("GET", f"{V1}?owner=admin").json["total"] == 3
    assert shared.call("GET", f"{V1}/all").json["total"] == 3
    assert shared.call("GET", f"{V1}?status=odd").status == 400
    assert shared.call("GET", f"{V1}?colour=red").status == 400


def test_a_name_is_taken_once(shared: Live) -> None:
    name = named()
    created(shared, name=name)
    other = created(shared)

    assert create(shared, name=name).key == "notebook-name"
    renamed = shared.call("PUT", f"{V1}/{other['id']}", {"name": name})
    assert (renamed.status, renamed.key) == (409, "notebook-name")


def test_flavors_have_their_memory_in_bytes(shared: Live) -> None:
    found = shared.call("GET", f"{V1}/flavors").json
    flavor = next(one for one in found["data"] if one["id"] == "danlu.cpu.1u")
    assert flavor["memory"] > 1 << 30
    assert flavor["vcpus"] == 1
    made = created(shared)
    others = shared.call("GET", f"{V1}/{made['id']}/flavors").json
    assert "danlu.cpu.1u" not in [one["id"] for one in others["data"]]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"name": "no spaces"}, "name"),
        ({"flavor": "none"}, "flavor"),
        ({"image_id": "none"}, "image_id"),
        ({"volume": {"category": "OBS"}}, "volume.category"),
        ({"hooks": {"container_hooks": {"post_start": {"script": "x"}}}}, "hooks"),
        ({"data_volumes": [{"uri": "obs://b/k/", "mount_path": "/etc"}]}, "mount_path"),
        (
            {"data_volumes": [{"uri": "obs://b/", "mount_path": "/home/ma-user/work/x"}]},
            "mount_path",
        ),
        ({"data_volumes": [{"uri": "obs://no-such-bucket/k/"}]}, "no-such-bucket"),
        ({"danlu": {"idle": "sometimes"}}, "danlu.idle"),
        ({"danlu": {"idle": "5"}}, "idle"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_is_wrong_is_named(shared: Live, body: dict[str, Any], said: str) -> None:
    refused = create(shared, **body)

    assert refused.status in (400, 404, 409)
    assert said in refused.json["error_msg"]


def test_flavor_and_image_cannot_change_while_it_runs(shared: Live) -> None:
    made = created(shared)
    until(shared, made["id"], "RUNNING")

    refused = shared.call("PUT", f"{V1}/{made['id']}", {"flavor": "danlu.cpu.2u"})

    assert (refused.status, refused.key) == (409, "notebook-not-stopped")


def test_a_start_that_fails_says_why(shared: Live) -> None:
    made = created(shared, script=Script(exit_code=3))

    failed = until(shared, made["id"], "CREATE_FAILED")

    assert "code 3" in failed["fail_reason"]


def test_one_workspace_does_not_see_anothers(shared: Live) -> None:
    made = created(shared)
    workspace, key = shared.another(named())

    for method, call in (("GET", ""), ("DELETE", ""), ("POST", "/stop"), ("GET", "/lease")):
        target = f"/v1/{workspace.id}/notebooks/{made['id']}{call}"
        answer = shared.call(method, target, key=key)
        assert (answer.status, answer.json["error_code"]) == (404, "ModelArts.6309")
    assert shared.call("GET", f"/v1/{workspace.id}/notebooks", key=key).json["total"] == 0


# ---------------------------------------------------------------- our own


def test_it_is_found_by_its_name_or_the_beginning_of_its_id(shared: Live) -> None:
    made = created(shared)

    for ref in (made["name"], made["id"], made["id"][:8]):
        assert shared.call("GET", f"{OURS}/{ref}").json["id"] == made["id"]
    assert shared.call("GET", f"{OURS}/{made['id'][:3]}").status == 404
    assert shared.call("GET", f"{OURS}/nothing").key == "notebook-missing"


def test_waiting_ends_when_it_runs(shared: Live) -> None:
    made = created(shared)

    found = shared.call("GET", f"{OURS}/{made['name']}?wait=settled&timeout_s=30").json

    assert found["status"] == "RUNNING"
    told = shared.call("GET", f"{OURS}/{made['name']}/events").json["events"]
    assert [event["key"] for event in told] == ["notebook-created", "notebook-ready"]
    assert told[0]["sentence"] == "created by admin"


def test_a_hold_and_its_end_are_shown(shared: Live) -> None:
    made = created(shared, danlu={"lease": "off", "idle": "1800"})
    until(shared, made["id"], "RUNNING")

    held = shared.call("POST", f"{OURS}/{made['name']}/hold", {"seconds": 7200, "pid": 17})

    assert held.json["danlu"]["hold"]["pid"] == 17
    assert shared.call("DELETE", f"{OURS}/{made['name']}/hold").json["danlu"]["hold"] is None
    refused = shared.call("POST", f"{OURS}/{made['name']}/hold", {"seconds": 5})
    assert (refused.status, refused.key) == (400, "field-value")


def test_a_renewal_of_ours_keeps_what_it_does_not_name(shared: Live) -> None:
    made = created(shared, danlu={"lease": "off", "idle": "1800"})
    until(shared, made["id"], "RUNNING")
    renew = f"{OURS}/{made['name']}/renew"

    same = shared.call("POST", renew).json["danlu"]["idle"]
    assert (same["policy"], same["after_s"]) == ("1800", 1800)
    leased = shared.call("POST", renew, {"lease_ms": 2 * HOUR_MS}).json
    assert leased["danlu"]["idle"]["policy"] == "1800"
    assert leased["lease"]["duration"] == 2 * HOUR_MS
    off = shared.call("POST", renew, {"lease": "off", "idle": "off"}).json
    assert (off["danlu"]["idle"]["policy"], off["lease"]["enable"]) == ("off", False)
    default = shared.call("POST", renew, {"idle": "default"}).json["danlu"]["idle"]
    assert (default["policy"], default["after_s"]) == ("", 3600)


def test_why_it_is_up_and_until_when_is_shown(shared: Live) -> None:
    made = created(shared, danlu={"lease": "off"})
    until(shared, made["id"], "RUNNING")
    shared.engine.sayings["activity.json"] = {
        "at": shared.running.platform.clock.now(),
        **{key: {"active_at": 1} for key in ("kernels", "terminals")},
        "processes": {"active_at": 1, "detail": "python"},
        "pids": [1],
    }
    shared.running.loop.activity.look()

    idle = shared.call("GET", f"{OURS}/{made['name']}").json["danlu"]["idle"]

    signal = idle["signals"][0]
    assert (signal["name"], signal["detail"], signal["goes_on"]) == ("processes", "python", False)
    assert signal["age_s"] > 1_000_000
    assert idle["stops_at"] == idle["since"] + 3_600_000
