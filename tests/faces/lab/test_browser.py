"""A real JupyterLab in a real chromium, through the proxy."""

from __future__ import annotations

import dataclasses
import http.server
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    Request,
    sync_playwright,
)

from danlu.faces.lab.instance import Instance, Phase, Sentence
from tests.faces.lab.house import TOKEN, House
from tests.jupyter import chromium

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

WAIT_MS = 60_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = chromium()
    with sync_playwright() as playwright:
        # The sandbox of chromium does not work for root.
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context()
    made.set_default_timeout(WAIT_MS)
    made.set_default_navigation_timeout(WAIT_MS)
    yield made
    made.close()


def noted(asked: list[Request]) -> Callable[[Request], None]:
    """A listener that keeps every request."""

    def note(request: Request) -> None:
        asked.append(request)

    return note


def run_cell(page: Page, code: str) -> None:
    """Type into the last cell, and run it."""
    page.get_by_text("| Idle").wait_for()
    editor = page.locator(".jp-Notebook .jp-Cell .cm-content").last
    editor.click()
    page.keyboard.insert_text(code)
    page.keyboard.press("Shift+Enter")


def output(page: Page, text: str) -> None:
    """Wait for an output."""
    page.locator(".jp-OutputArea-output", has_text=text).first.wait_for()


def test_a_cell_runs_and_all_is_still_there_after_the_tab_was_closed(
    house: House, lab: Path, context: BrowserContext
) -> None:
    one = house.add(lab, token=TOKEN)
    page = context.new_page()
    page.goto(house.url(one))
    assert page.url.startswith(f"http://{house.host(one)}/lab")
    page.locator('.jp-LauncherCard[data-category="Notebook"]').first.click()
    page.locator(".jp-Notebook").wait_for()
    run_cell(page, "kept = 6 * 7\nprint('the answer is', kept)")
    output(page, "the answer is 42")
    page.keyboard.press("Control+s")
    page.locator(".jp-Dialog .jp-mod-accept").click()  # it asks for a name, once
    page.locator(".jp-mod-dirty").wait_for(state="detached")
    page.close()

    page = context.new_page()
    page.goto(f"http://{house.host(one)}/lab")
    output(page, "the answer is 42")
    run_cell(page, "print('and it is still', kept)")
    output(page, "and it is still 42")
    page.close()


def test_a_start_is_shown_and_becomes_lab(house: House, lab: Path, context: BrowserContext) -> None:
    one = house.add(
        lab, token=TOKEN, phase=Phase.STARTING, detail=Sentence("image: 40 %", "镜像：40 %")
    )
    page = context.new_page()
    page.goto(house.url(one))
    assert "image: 40 %" in page.inner_text("body")
    house.known.instances[one.notebook] = dataclasses.replace(one, phase=Phase.RUNNING)
    page.locator("#jp-main-dock-panel, .jp-LabShell").first.wait_for()


def test_lab_speaks_chinese_and_shows_what_is_used(
    house: House, lab: Path, context: BrowserContext
) -> None:
    one = house.add(lab, token=TOKEN)
    page = context.new_page()
    page.goto(house.url(one))
    page.locator("#jp-main-dock-panel").wait_for()
    pack = page.evaluate("fetch('/lab/api/translations/zh_CN').then(a => a.json())")
    assert any("\u4e00" <= sign <= "\u9fff" for sign in json.dumps(pack, ensure_ascii=False))
    used = page.evaluate("fetch('/api/metrics/v1').then(a => a.json())")
    assert used["rss"] > 0


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
@pytest.mark.parametrize("phase", [Phase.STARTING, Phase.STOPPED, Phase.FAILED])
def test_what_is_seen_where_lab_is_not_can_be_read(
    house: House, browser: Browser, phase: Phase, locale: str, theme: Any
) -> None:
    page = browser.new_page(locale=locale, color_scheme=theme)
    one = house.add(None, phase=phase, detail=Sentence("image: 40 %", "镜像：40 %"))
    page.goto(house.url(one))
    chinese = locale == "zh-CN"
    assert page.evaluate("document.documentElement.lang") == ("zh-CN" if chinese else "en")
    assert ("镜像：40 %" if chinese else "image: 40 %") in page.inner_text("body")
    looks_again = "自动刷新" if chinese else "looks again by itself"
    assert (looks_again in page.inner_text("body")) == (phase is Phase.STARTING)
    style = "getComputedStyle(document.body)"
    text, ground = (page.evaluate(f"{style}.{one}") for one in ("color", "backgroundColor"))
    assert contrast(text, ground) >= 7, (text, ground)
    dark = luminance(ground) < luminance(text)
    assert dark == (theme == "dark")
    page.close()


def luminance(color: str) -> float:
    """WCAG's, of a color as the browser writes it: rgb(1, 2, 3)."""
    parts = [int(one) / 255 for one in color.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return sum(weight * one for weight, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_lab_begins_in_the_browsers_language_and_leaves_the_choice_to_its_user(
    house: House, lab: Path, folder: Path, browser: Browser
) -> None:
    def menu(locale: str) -> str:
        page = browser.new_page(locale=locale)
        page.set_default_timeout(WAIT_MS)
        page.goto(house.url(house.add(lab, token=TOKEN)))
        page.locator("#jp-main-dock-panel").wait_for()
        shown = page.locator("#jp-MainMenu").inner_text()
        page.close()
        return shown

    assert "文件" in menu("zh-CN")
    assert "File" in menu("en-US")

    chosen = folder / "work/.danlu/lab/settings/@jupyterlab/translation-extension"
    chosen.mkdir(parents=True)
    try:
        (chosen / "plugin.jupyterlab-settings").write_text('{"locale": "en"}')
        assert "File" in menu("zh-CN")
        (chosen / "plugin.jupyterlab-settings").write_text('{"locale": "zh_CN"}')
        assert "文件" in menu("en-US")
    finally:
        shutil.rmtree(chosen)


# ---------------------------------------------------------------- attacks

ATTACK = """
async api => {
  const told = {};
  const tried = async (name, action) => {
    try { told[name] = await action(); } catch (error) { told[name] = 'blocked: ' + error.name; }
  };
  told.origin = location.origin;
  told.cookie = document.cookie;
  for (const credentials of ['omit', 'include']) {
    await tried('read ' + credentials,
      () => fetch(api + '/danlu/v1/health', {credentials}).then(a => a.text()));
    await tried('write ' + credentials, () => fetch(api + '/v2/p/training-jobs', {
      method: 'POST', credentials, headers: {'Content-Type': 'application/json'}, body: '{}'
    }).then(a => a.text()));
  }
  await tried('blind', () => fetch(api + '/danlu/v1/health',
    {mode: 'no-cors', credentials: 'include'}).then(a => a.type + ' ' + a.status));
  await tried('socket', () => new Promise((done, failed) => {
    const socket = new WebSocket(api.replace('http', 'ws') + '/danlu/v1/health');
    socket.onopen = () => done('open');
    socket.onerror = () => failed(new Error());
  }));
  await tried('events', () => new Promise((done, failed) => {
    const source = new EventSource(api + '/danlu/v1/health', {withCredentials: true});
    source.onopen = () => done('open');
    source.onerror = () => { source.close(); failed(new Error()); };
  }));
  await tried('frame', async () => {
    const frame = document.createElement('iframe');
    frame.src = api + '/danlu/v1/health';
    document.body.append(frame);
    await new Promise(done => frame.onload = done);
    return frame.contentDocument ? frame.contentDocument.body.innerText : 'no document';
  });
  for (const domain of ['localhost', '.localhost', new URL(api).hostname])
    document.cookie = 'danlu-session=planted; path=/; domain=' + domain;
  document.cookie = '__Host-danlu-session=planted; path=/; secure';
  return told;
}
"""


class Echo(http.server.BaseHTTPRequestHandler):
    """A program of the notebook's user: it sees every header that reaches it."""

    def do_GET(self) -> None:
        body = json.dumps(self.headers.items()).encode()
        page = self.path.endswith(".html")
        body = b"<!doctype html><title>attack</title><body></body>" if page else body
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if page else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        del format, arguments


@contextmanager
def user_program() -> Iterator[int]:
    """Runs in the instance, on a port; the notebook's origin has it at /proxy/PORT/."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join(60)


def attack_page(house: House, one: Instance, context: BrowserContext, port: int) -> Page:
    page = context.new_page()
    page.goto(house.url(one))
    page.goto(f"http://{house.host(one)}/proxy/{port}/attack.html")
    assert page.title() == "attack"
    return page


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_a_page_of_the_notebook_cannot_use_the_api(
    house: House, lab: Path, context: BrowserContext, name: str
) -> None:
    one = house.add(lab, token=TOKEN)
    api = f"http://{name}:{house.live.port}"
    console: Any = {"name": "danlu-session", "value": "of-the-console", "url": api}
    console |= {"httpOnly": True, "sameSite": "Lax"}
    context.add_cookies([console])
    asked: list[Request] = []
    with user_program() as port:
        page = attack_page(house, one, context, port)
        page.on("request", noted(asked))
        told = page.evaluate(ATTACK, api)
        seen = page.evaluate("fetch('echo').then(a => a.json())")
    assert told.pop("origin") == f"http://{house.host(one)}"
    assert "danlu" not in told.pop("cookie")
    assert told.pop("blind") == "opaque 0"
    assert told.pop("frame") in ("no document", "blocked: SecurityError", "")
    assert {said for said in told.values() if not said.startswith("blocked: ")} == set(), told
    to_api = [one for one in asked if one.url.startswith(api)]
    assert len(to_api) >= 5
    assert not [one.url for one in to_api if "cookie" in one.all_headers()]
    # Nothing that lets anybody in anywhere has reached the user's program.
    said = json.dumps(seen)
    assert "danlu" not in said
    assert "of-the-console" not in said
    # And nothing that it set is a cookie of the console now.
    kept = context.cookies(api)
    assert [(cookie["name"], cookie["value"]) for cookie in kept] == [
        ("danlu-session", "of-the-console")
    ]


def test_a_page_of_one_notebook_cannot_use_another(
    house: House, lab: Path, folder: Path, context: BrowserContext
) -> None:
    """The same person has both open: his cookie for the other one is in this very browser."""
    evil, good = house.add(lab, token=TOKEN), house.add(lab, token=TOKEN)
    page = context.new_page()
    page.goto(house.url(good))
    with user_program() as port:
        page = attack_page(house, evil, context, port)
        told = page.evaluate(
            """async target => {
              const answers = [];
              for (const mode of ['cors', 'no-cors'])
                await fetch(target + '/api/contents/planted', {
                  method: 'POST', mode, credentials: 'include', body: '{"type":"notebook"}'
                }).then(a => answers.push(a.type), error => answers.push(error.name));
              const form = document.createElement('form');
              form.method = 'post'; form.enctype = 'text/plain'; form.target = 'hidden';
              form.action = target + '/api/contents';
              const frame = document.createElement('iframe');
              frame.name = 'hidden';
              document.body.append(frame, form);
              const loaded = new Promise(done => frame.onload = done);
              form.submit(); await loaded;
              await new Promise(done => {
                const socket = new WebSocket(target.replace('http', 'ws') + '/terminals/x');
                socket.onopen = () => { answers.push('open'); done(); };
                socket.onerror = () => { answers.push('refused'); done(); };
              });
              return answers;
            }""",
            f"http://{house.host(good)}",
        )
    assert told == ["TypeError", "opaque", "refused"]
    assert not list((folder / "work").glob("Untitled*.ipynb.planted"))
    assert not (folder / "work" / "planted").exists()


def test_the_token_is_nowhere_in_the_browser(
    house: House, lab: Path, context: BrowserContext
) -> None:
    one = house.add(lab, token=TOKEN)
    asked: list[Request] = []
    context.on("request", noted(asked))
    page = context.new_page()
    page.goto(house.url(one))
    page.locator("#jp-main-dock-panel").wait_for()
    assert TOKEN not in page.content()
    assert len(asked) > 10
    for request in asked:
        assert TOKEN not in request.url
        assert TOKEN not in json.dumps(request.all_headers())
    cookies = context.cookies()
    (ours,) = (one for one in cookies if one["name"] == "danlu-notebook")
    assert (ours["httpOnly"], ours["sameSite"]) == (True, "Lax")
    assert {cookie["domain"] for cookie in cookies} == {house.host(one).partition(":")[0]}
