"""Who is let in at a notebook's origin, how often, for how long, and what all others get to see."""

from __future__ import annotations

import dataclasses
import re
import secrets
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from danlu.faces.lab.instance import Instance, Phase, Sentence
from danlu.faces.lab.session import COOKIE_S, TICKET_S, Cookies, Session, Tickets
from tests.faces.http.live import Answer
from tests.faces.lab.house import USER, House, answering, listening

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nlab"
PAGE = {"Sec-Fetch-Dest": "document", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "none"}


def get(
    house: House, one: Instance, cookie: str, path: str = "/lab", method: str = "GET", **more: str
) -> Answer:
    headers = {"Host": house.host(one), **({"Cookie": cookie} if cookie else {})}
    headers.update({name.replace("_", "-"): value for name, value in more.items()})
    return house.live.send(method, path, headers)


def page(house: House, one: Instance, cookie: str, language: str = "en") -> tuple[int, str]:
    answer = get(house, one, cookie, Accept_Language=language, **PAGE)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "www-authenticate" not in answer.headers
    return answer.status, answer.body.decode()


def test_a_ticket_lets_in_once(house: House, tmp_path: Path) -> None:
    with listening(tmp_path, answering(OK)) as path:
        one = house.add(path)
        url = urlsplit(house.url(one))
        assert url.netloc == house.host(one)
        where = f"{url.path}?{url.query}"
        first = get(house, one, "", where)
        assert (first.status, first.headers["location"]) == (303, "/lab")
        assert first.headers["referrer-policy"] == "no-referrer"
        assert get(house, one, first.headers["set-cookie"].partition(";")[0]).body == b"lab"

        again = get(house, one, "", where)
        assert (again.status, again.key) == (401, "lab-ticket")
        # Whoever is in already and follows his link again is led on, without another cookie.
        known = get(house, one, first.headers["set-cookie"].partition(";")[0], where)
        assert known.status == 303
        assert "set-cookie" not in known.headers


def test_the_cookie_is_for_this_host_and_no_script(house: House) -> None:
    one = house.add(None)
    url = urlsplit(house.url(one))
    cookie = get(house, one, "", f"{url.path}?{url.query}").headers["set-cookie"]
    flags = [part.strip() for part in cookie.split(";")[1:]]
    assert flags == ["Path=/", f"Max-Age={COOKIE_S}", "HttpOnly", "SameSite=Lax"]


def test_a_link_that_is_looked_at_in_advance_keeps_its_ticket(house: House) -> None:
    """Chat programs and browsers fetch links before anybody has followed them."""
    one = house.add(None)
    url = urlsplit(house.url(one))
    where = f"{url.path}?{url.query}"
    assert get(house, one, "", where, "HEAD").status == 401
    assert get(house, one, "", where, Sec_Purpose="prefetch;prerender").status == 401
    assert get(house, one, "", where).status == 303


def test_a_ticket_is_for_its_notebook(house: House) -> None:
    one, other = house.add(None), house.add(None)
    url = urlsplit(house.url(one))
    assert get(house, other, "", f"{url.path}?{url.query}").key == "lab-ticket"


class Clock:
    def __init__(self) -> None:
        self.s = 1_000_000.0

    def now(self) -> int:
        return int(self.s * 1000)

    def monotonic(self) -> float:
        return self.s


def test_tickets_last_a_minute() -> None:
    clock = Clock()
    tickets = Tickets(clock)
    session = Session("u", "w", "n", "s")
    fresh, old = tickets.issue(session), tickets.issue(session)
    clock.s += TICKET_S - 1
    assert tickets.redeem(fresh, "n") == session
    clock.s += 2
    assert tickets.redeem(old, "n") is None


def test_a_cookie_says_what_it_was_made_for_and_nothing_else() -> None:
    clock = Clock()
    cookies = Cookies(b"k" * 32, clock, secure=True)
    session = Session("ünïcode; user", "w", "n", "start")
    header = cookies.header(session)
    assert header.startswith("__Host-danlu-notebook=")
    assert header.endswith("; Secure")
    cookie = header.partition(";")[0]
    assert cookies.session(f"a=b; {cookie}; c=d", "n") == session
    # One that another host of the domain has tossed in does not hide it.
    assert cookies.session(f"__Host-danlu-notebook=1.9.w.x.y.z; {cookie}", "n") == session
    assert cookies.session(cookie, "m") is None
    name, _, value = cookie.partition("=")
    version, ends, user, workspace, start, mac = value.split(".")
    for forged in (
        f"{version}.{int(ends) + 1}.{user}.{workspace}.{start}.{mac}",
        f"{version}.{ends}.{user}.{workspace}.{start}x.{mac}",
        f"{version}.{ends}.{user}.{workspace}.{start}.",
        f"{version}.{ends}.{user}.{workspace}.{start}.é",
        "....",
        "",
    ):
        assert cookies.session(f"{name}={forged}", "n") is None, forged
    assert Cookies(b"j" * 32, clock, secure=True).session(cookie, "n") is None
    clock.s += COOKIE_S + 1
    assert cookies.session(cookie, "n") is None


def test_a_stop_ends_what_a_cookie_opens(house: House, tmp_path: Path) -> None:
    with listening(tmp_path, answering(OK)) as path:
        one = house.add(path)
        cookie = house.enter(one)
        assert get(house, one, cookie).status == 200
        known = house.known.instances
        known[one.notebook] = dataclasses.replace(one, phase=Phase.STOPPED)
        assert get(house, one, cookie).key == "lab-stopped"
        # It runs again: whoever was let in to what ran before is not let in to this.
        known[one.notebook] = dataclasses.replace(one, start="another")
        answer = get(house, one, cookie)
        assert (answer.status, answer.key) == (401, "lab-other-start")
        del known[one.notebook]
        assert get(house, one, cookie).key == "notebook-missing"


@pytest.mark.parametrize("exists", [True, False], ids=["a notebook", "no notebook"])
def test_a_stranger_learns_nothing(house: House, *, exists: bool) -> None:
    """What is there, what it is called and how it fares is for those who were let in."""
    one = house.add(None, name="payroll", phase=Phase.STOPPED)
    if not exists:
        del house.known.instances[one.notebook]
    status, shown = page(house, one, "")
    assert status == 401
    assert f"danlu notebook open {one.notebook}" in shown
    assert "payroll" not in shown


@pytest.mark.parametrize(
    ("phase", "status", "english", "chinese", "again"),
    [
        (Phase.STARTING, 503, "is starting (image: 40 %)", "正在启动（镜像：40 %）", True),
        (Phase.STOPPING, 503, "is being stopped (image: 40 %)", "正在停止（镜像：40 %）", True),
        (Phase.STOPPED, 503, "danlu notebook start {id}", "danlu notebook start {id}", False),
        (Phase.FAILED, 503, "has failed (image: 40 %)", "失败（镜像：40 %）", False),
        (Phase.RUNNING, 502, "does not answer", "没有应答", True),
    ],
)
def test_the_page_of_a_notebook_that_cannot_be_seen(
    house: House, phase: Phase, status: int, english: str, chinese: str, *, again: bool
) -> None:
    detail = Sentence("image: 40 %", "镜像：40 %")
    one = house.add(None, name="<b>", phase=phase, detail=detail)
    cookie = house.enter(one)
    for language, said in (("en", english), ("zh-CN", chinese)):
        code, shown = page(house, one, cookie, language)
        assert code == status
        assert said.format(id=one.notebook) in shown
        assert f'lang="{language}"' in shown
        assert "<b>" not in shown
        assert "&lt;b&gt;" in shown
        assert ('http-equiv="refresh"' in shown) == again
        assert not re.search(r"<script|onload|javascript:", shown)
    program = get(house, one, cookie, "/api/kernels", Accept="application/json")
    assert (program.status, program.headers["content-type"]) == (status, "application/json")
    assert program.headers["retry-after"] == "2"


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("POST", {"Origin": "https://evil.example"}),
        ("POST", {"Origin": "null"}),
        ("POST", {"Origin": "http://nb-other.localhost"}),
        ("POST", {"Origin": "http://{host}0"}),
        ("PUT", {"Origin": "http://localhost"}),
        ("GET", {"Origin": "https://evil.example"}),
        ("OPTIONS", {"Origin": "https://evil.example", "Access-Control-Request-Method": "PUT"}),
        ("POST", {"Sec-Fetch-Site": "cross-site"}),
        ("POST", {"Sec-Fetch-Site": "same-site", "Origin": "http://{host}"}),
        ("GET", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}),
        ("GET", {**PAGE, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "iframe"}),
        ("POST", {**PAGE, "Sec-Fetch-Site": "cross-site"}),
    ],
)
def test_another_sites_page_gets_nothing(
    house: House, tmp_path: Path, method: str, headers: dict[str, str]
) -> None:
    with listening(tmp_path, answering(OK)) as path:
        one = house.add(path)
        cookie = house.enter(one)
        sent = {name: value.format(host=house.host(one)) for name, value in headers.items()}
        answer = get(house, one, cookie, "/api/contents", method, **sent)
    assert answer.status == 403
    assert b"another site" in answer.body
    assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("POST", {"Origin": "http://{host}", "Sec-Fetch-Site": "same-origin"}),
        ("GET", {"Sec-Fetch-Site": "same-origin"}),
        ("GET", {**PAGE, "Sec-Fetch-Site": "cross-site"}),
        ("POST", {}),
    ],
    ids=["its page", "its page reads", "a link elsewhere", "a program"],
)
def test_its_own_pages_and_links_to_it_work(
    house: House, tmp_path: Path, method: str, headers: dict[str, str]
) -> None:
    with listening(tmp_path, answering(OK)) as path:
        one = house.add(path)
        sent = {name: value.format(host=house.host(one)) for name, value in headers.items()}
        assert get(house, one, house.enter(one), "/x", method, **sent).status == 200


@pytest.mark.parametrize(
    "host", ["nb-{id}.localhost.evil.example", "nb-{id}", "xnb-{id}.localhost", "nb-.localhost"]
)
def test_other_hosts_are_no_notebook(house: House, host: str) -> None:
    one = house.add(None)
    name = host.format(id=one.notebook)
    answer = house.live.send("GET", "/lab", {"Host": f"{name}:{house.live.port}"})
    assert (answer.status, answer.key) == (403, "host-refused")


def test_the_api_is_not_on_a_notebooks_origin(house: House) -> None:
    one = house.add(None, phase=Phase.STOPPED)
    answer = house.live.call("GET", "/danlu/v1/{p}/status", headers={"Host": house.host(one)})
    assert (answer.status, answer.key) == (401, "lab-no-session")


def test_two_hosts_in_one_request_are_none(house: House) -> None:
    one = house.add(None)
    connection = house.connection()
    connection.putrequest("GET", "/lab", skip_host=True)
    connection.putheader("Host", house.host(one))
    connection.putheader("Host", house.live.host)
    connection.endheaders()
    assert connection.getresponse().status == 403
    connection.close()


def test_a_cookie_outlives_a_restart_of_the_server(house: House) -> None:
    """An open Lab goes on: the key is the server's, not the process's."""
    running = house.live.running
    again = Cookies(running.browser_key().reveal().encode(), running.platform.clock, secure=False)
    one = house.add(None)
    assert again.session(house.enter(one), one.notebook) == Session(
        USER.name, USER.workspace, one.notebook, one.start
    )


def test_random_bytes_as_a_cookie_are_no_error(house: House) -> None:
    one = house.add(None)
    for _ in range(50):
        garbage = secrets.token_bytes(40).translate(None, b"\r\n\0").decode("latin-1")
        name = house.live.server.state.labs.cookies.name
        headers = {"Host": house.host(one), "Cookie": f"{name}={garbage}"}
        assert house.live.send("GET", "/lab", headers).status in (400, 401)
