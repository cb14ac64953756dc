"""The server's end of the process that starts agents."""

from __future__ import annotations

import json
import select
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import danlu.node
from danlu.model.errors import EngineError
from danlu.node.namespaces import Offer
from danlu.ports.task_directory import ProcessIdentity

ANSWER_LIMIT_S = 30.0
ANSWER_BYTES = 4096


class Starter:
    """Keeps one starter process running and asks it for agents. Thread-safe."""

    def __init__(self, errors: Path, environment: Mapping[str, str], *, bare: bool) -> None:
        self._errors = errors
        self._bare = bare
        self._offer: Offer | None = None
        self._environment = dict(environment)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def warm(self) -> None:
        """Have the process ready before it is needed."""
        with self._lock:
            self._running()

    def offer(self) -> Offer:
        """What namespaces the machine allows; asked once."""
        with self._lock:
            if self._offer is None:
                try:
                    answer = self._request({})
                    self._offer = Offer(str(answer["kind"]), str(answer["problem"]))
                except (OSError, ValueError, KeyError) as error:
                    self._end()
                    return Offer(problem=str(error))
            return self._offer

    def begin(self, directory: Path) -> ProcessIdentity:
        """Start an agent in a task directory; EngineError if that cannot be done.

        A starter that has died is replaced. Asking twice does no harm: the second agent finds
        the first one in charge and leaves.
        """
        with self._lock:
            try:
                return self._ask(directory)
            except (OSError, ValueError):
                self._end()
            try:
                return self._ask(directory)
            except (OSError, ValueError) as error:
                self._end()
                raise EngineError("engine-failed", detail=f"no agent starts: {error}") from error

    def close(self) -> None:
        """Let the process end. The agents stay."""
        with self._lock:
            self._end()

    def _ask(self, directory: Path) -> ProcessIdentity:
        answer = self._request({"directory": str(directory)})
        if "error" in answer:
            raise EngineError("engine-failed", detail=str(answer["error"]))
        return cast("ProcessIdentity", answer)

    def _request(self, request: Mapping[str, str]) -> dict[str, Any]:
        process = self._running()
        if process.stdin is None or process.stdout is None:
            raise OSError("the starter has no pipes")
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        if not select.select([process.stdout], [], [], ANSWER_LIMIT_S)[0]:
            raise TimeoutError(f"no answer in {ANSWER_LIMIT_S:.0f} s")
        answer = json.loads(process.stdout.readline(ANSWER_BYTES))
        if not isinstance(answer, dict):
            raise ValueError("the starter does not answer with an object")  # noqa: TRY004 -- as above
        return answer

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self._end()
        if self._process is None:
            mode = "--serve-bare" if self._bare else "--serve"
            program = Path(danlu.node.__file__).with_name("__main__.py")
            with self._errors.open("ab") as errors:
                # Isolated and without site: nothing of the server's environment changes what an
                # agent is, and it starts in a third of the time.
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-X", "utf8", str(program), mode],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env=self._environment,
                    cwd="/",
                    start_new_session=True,
                )
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)
            return
        process.kill()
        process.wait()
