"""Frees what images take that nobody has used for long, now and then while the server runs."""

from __future__ import annotations

import logging
import threading

from danlu.settings import Settings
from danlu.wiring import images

EVERY_S = 3600.0
FIRST_S = 300.0
DAY_S = 86_400

log = logging.getLogger(__name__)


class Tidier:
    """Removes environments of images by the server's settings. What a task uses stays."""

    def __init__(
        self, settings: Settings, first_s: float = FIRST_S, every_s: float = EVERY_S
    ) -> None:
        self._settings = settings
        self._first_s = first_s
        self._every_s = every_s
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="image-tidier", daemon=True)

    def start(self) -> None:
        """Begin, unless the settings say that all may stay."""
        if self._settings.image_unused_days or self._settings.image_budget_gib:
            self._thread.start()

    def close(self) -> None:
        """Stop; what is being removed now is removed by the next one."""
        self._closing.set()

    def tidy(self) -> None:
        """Remove what is too old or too much."""
        days, budget = self._settings.image_unused_days, self._settings.image_budget_gib
        freed = images.collect(
            self._settings,
            unused_for_s=days * DAY_S if days else None,
            budget=budget << 30 if budget else None,
            dry_run=False,
        )
        for one in freed.removed:
            log.info("environment of image %s (%s) removed: not in use", one.name, one.id)

    def _run(self) -> None:
        wait_s = self._first_s
        while not self._closing.wait(wait_s):
            wait_s = self._every_s
            try:
                # Nothing is made where no image has ever been used.
                if images.root(self._settings).is_dir():
                    self.tidy()
            except Exception:
                log.exception("images cannot be tidied; it is tried again")
