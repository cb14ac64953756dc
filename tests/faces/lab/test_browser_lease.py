"""A notebook's end, as somebody at work in a real JupyterLab is told of it, in a real chromium."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from danlu.faces.lab.session import Session
from danlu.flow.notices import ending, extended
from danlu.model.idle import Outlook, Verdict
from danlu.model.reason import Reason, ReasonCode
from danlu.model.texts import Language, text
from tests.faces.lab.house import TOKEN, USER, House
from tests.faces.lab.test_browser import WAIT_MS, browser

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

__all__ = ["browser"]

MINUTE = 60_000


class Lease:
    """What the records would say of a notebook's end."""

    def __init__(self) -> None:
        self.left_min, self.warned, self.code = 55, 0, ReasonCode.LEASE_ENDED
        self.extended_by: list[str] = []

    def soon(self, minutes: int, code: ReasonCode = ReasonCode.LEASE_ENDED) -> None:
        self.left_min, self.warned, self.code = minutes, minutes, code

    def told(self, session: Session, language: Language) -> dict[str, Any]:
        seen = self._outlook()
        return {
            "ends_at": seen.ends_at,
            "warned": self.warned,
            "warning": ending(seen, 0, language) if self.warned else "",
            "extensible": seen.extensible,
            "label": text("lab-extend", language),
            "command": text("lab-extend-command", language),
        }

    async def extend(self, session: Session, language: Language) -> dict[str, Any]:
        self.extended_by.append(session.user)
        self.left_min, self.warned = 60, 0
        done = extended(self._outlook(), 0, language)
        return {**self.told(session, language), "done": done}

    def _outlook(self) -> Outlook:
        because = Reason(self.code, {"minutes": 60})
        return Outlook(Verdict((), None, None), None, self.left_min * MINUTE, because)


@pytest.fixture
def lease(house: House, monkeypatch: pytest.MonkeyPatch) -> Lease:
    made = Lease()
    monkeypatch.setattr(house.live.server.state.labs, "leases", made)
    return made


@pytest.fixture(params=["en-US", "zh-CN"])
def context(browser: Browser, request: pytest.FixtureRequest) -> Iterator[BrowserContext]:
    made = browser.new_context(locale=request.param)
    made.set_default_timeout(WAIT_MS)
    made.set_default_navigation_timeout(WAIT_MS)
    yield made
    made.close()


def opened(house: House, lab: Path, context: BrowserContext) -> Page:
    page = context.new_page()
    page.goto(house.url(house.add(lab, token=TOKEN)))
    page.locator("#jp-main-dock-panel").wait_for()
    return page


def test_lab_says_when_it_ends_and_one_click_puts_that_off(
    house: House, lab: Path, lease: Lease, context: BrowserContext
) -> None:
    page = opened(house, lab, context)
    chinese = page.evaluate("navigator.language").startswith("zh")
    warning = "该 Notebook 将在 10 分钟后停止" if chinese else "will be stopped in 10 min"
    toast = page.locator(".Toastify__toast")
    assert toast.filter(has_text=warning).count() == 0

    lease.soon(10)
    toast.filter(has_text=warning).wait_for()
    lease.soon(2)
    toast.filter(has_text=warning.replace("10", "2")).wait_for()
    toast.filter(has_text=warning).wait_for(state="detached")
    toast.get_by_role("button", name="续期" if chinese else "Extend").click()

    toast.filter(has_text="已续期" if chinese else "Extended").wait_for()
    toast.filter(has_text=warning.replace("10", "2")).wait_for(state="detached")
    assert lease.extended_by == [USER.name]


def test_what_cannot_be_put_off_is_told_without_a_button(
    house: House, lab: Path, lease: Lease, context: BrowserContext
) -> None:
    page = opened(house, lab, context)
    lease.soon(2, ReasonCode.RUN_LIMIT)
    toast = page.locator(".Toastify__toast")
    toast.filter(has_text="60 ").first.wait_for()
    assert toast.get_by_role("button", name="Extend").count() == 0
    assert toast.get_by_role("button", name="续期").count() == 0
