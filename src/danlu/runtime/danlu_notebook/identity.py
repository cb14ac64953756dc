"""Who may use JupyterLab here: whoever brings its token in a header, and that is the proxy alone.

Jupyter's own provider of identities writes the token into every page of Lab and into files of the
home, and gives cookies that are as good as the token. Of this one the browser gets nothing.
"""

from __future__ import annotations

import hmac
import os

from jupyter_server.auth import IdentityProvider, User
from tornado.web import RequestHandler
from traitlets import default

TOKEN = "DANLU_LAB_TOKEN"  # noqa: S105 -- the name of a variable


class Proxied(IdentityProvider):
    """Knows one user, by the token that the platform made for this start."""

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        # What a kernel or a terminal runs is not to have it.
        self._expected = f"token {os.environ.pop(TOKEN)}".encode()

    @default("token")
    def _no_token(self) -> str:
        """What Lab would show of it."""
        return ""

    @property
    def auth_enabled(self) -> bool:
        """Whether anybody is asked who he is."""
        return True

    @property
    def login_available(self) -> bool:
        """Whether there is a form to log in by."""
        return False

    def get_user(self, handler: RequestHandler) -> User | None:
        """The user, or None for whoever comes without the token."""
        sent = handler.request.headers.get("Authorization", "")
        if not hmac.compare_digest(sent.encode("utf-8", "replace"), self._expected):
            return None
        # The proxy has checked the origin: Jupyter's own checks are for cookies.
        handler._token_authenticated = True  # noqa: SLF001 -- what Jupyter's own providers do
        return User("user")
