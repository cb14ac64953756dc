"""A notebook as its user meets it: the command line, a real chromium, a real JupyterLab."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, sync_playwright

from tests.faces.cli.house import House
from tests.jupyter import chromium, jupyter

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

__all__ = ["jupyter"]

WAIT_MS = 90_000


@pytest.fixture
def house(tmp_path: Path, jupyter: Path) -> Iterator[House]:
    home = tmp_path / "home"
    home.mkdir()
    made = House(tmp_path / "data", home)
    made.env["DANLU_DEFAULT_ENVIRONMENT"] = str(jupyter.parent.parent)
    made.good("up", "--port", "0")
    yield made
    for name in made.good("notebook", "ls", "-q").split():
        made.run("notebook", "rm", name, "--yes")
    made.run("down")


@pytest.fixture
def context() -> Iterator[BrowserContext]:
    program = chromium()
    with sync_playwright() as playwright:
        # The sandbox of chromium does not work for root.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        made = browser.new_context()
        made.set_default_timeout(WAIT_MS)
        made.set_default_navigation_timeout(WAIT_MS)
        yield made
        browser.close()


def run_cell(page: Page, code: str, output: str) -> None:
    page.get_by_text("| Idle").wait_for()
    page.locator(".jp-Notebook .jp-Cell .cm-content").last.click()
    page.keyboard.insert_text(code)
    page.keyboard.press("Shift+Enter")
    shown(page, output)


def shown(page: Page, output: str) -> None:
    page.locator(".jp-OutputArea-output", has_text=output).first.wait_for()


def test_kernel_and_output_outlive_the_tab_and_the_server(
    house: House, context: BrowserContext
) -> None:
    house.good("notebook", "create", "mine", "--flavor", "danlu.cpu.1u")
    link = house.good("notebook", "open", "mine").strip()
    page = context.new_page()
    page.goto(link)
    lab = page.url
    page.locator('.jp-LauncherCard[data-category="Notebook"]').first.click()
    page.locator(".jp-Notebook").wait_for()
    run_cell(page, "kept = 6 * 7\nprint('the answer is', kept)", "the answer is 42")
    page.keyboard.press("Control+s")
    page.locator(".jp-Dialog .jp-mod-accept").click()  # it asks for a name, once
    page.locator(".jp-mod-dirty").wait_for(state="detached")
    page.close()

    page = context.new_page()
    page.goto(lab)
    shown(page, "the answer is 42")
    run_cell(page, "print('and is still', kept)", "and is still 42")
    page.close()

    port = int(lab.split(":")[2].partition("/")[0])
    os.kill(house.server_pid(), signal.SIGKILL)
    house.good("up", "--port", str(port))
    page = context.new_page()
    page.goto(lab)
    run_cell(page, "print('and after all', kept)", "and after all 42")
    page.close()

    house.good("notebook", "stop", "mine")
    page = context.new_page()
    page.goto(lab)
    assert "danlu notebook start" in page.inner_text("body")
    refused = house.run("notebook", "open", "mine")
    assert refused.returncode == 5
    assert "danlu notebook start mine" in refused.stderr.decode()
    house.good("notebook", "start", "mine")
    page.goto(lab)
    assert "danlu notebook open" in page.inner_text("body")  # let in to another start than this
    page.goto(house.good("notebook", "open", "mine").strip())
    page.locator("#jp-main-dock-panel").wait_for()
