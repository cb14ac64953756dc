"""Commands in running jobs over a WebSocket, as ModelArts' CloudShell and in our own words.

Both speak the messages of `model/execute.py`. What is refused is refused before the WebSocket is
there, with a status and a sentence.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
from dataclasses import dataclass, field

from danlu.faces.http.call import Call
from danlu.faces.http.danlu_job import resolve
from danlu.faces.http.gate import Access, Rule
from danlu.faces.http.reply import Answer, json_reply
from danlu.faces.http.route import BodyLimits, Describe, Parameter, Routes
from danlu.faces.http.server import Server
from danlu.faces.http.talk import GOING_AWAY, NORMAL, TOO_BIG, Hung, Socket, Talk
from danlu.flow import execute as flow
from danlu.model import execute as words
from danlu.model.attempt import State
from danlu.model.errors import Invalid, PlatformError, Refused
from danlu.model.execute import Command
from danlu.model.identity import Caller
from danlu.model.job import JobView
from danlu.ports.engine import Execution
from danlu.wire.shape import Schema

CLOUD_SHELL = "/v2/{project_id}/training-jobs/{training_job_id}/exec"
CONSOLE = f"/modelarts/rest{CLOUD_SHELL}"
CONSOLE_JOBS = "/modelarts/rest/trainingJob/v2/{project_id}/training-jobs/{training_job_id}/exec"
OWN = "/danlu/v1/{project_id}/jobs/{job_id}/exec"
SHELL = "/bin/bash"
MOST = 200
"""Commands at one time; each is a process of ours and some memory."""
SWITCHING = {101: None}
ALLOWED: Schema = {
    "type": "object",
    "properties": {"access": {"type": "object", "properties": {"allow": {"type": "boolean"}}}},
}
NUMBER = {"type": "integer", "minimum": 1, "maximum": words.MOST_SIZE}
SOCKET = BodyLimits(socket=True)

routes = Routes()


def _rule(*, writes: bool = True) -> Rule:
    return Rule("modelarts:trainJob:exec", Access.PROJECT, writes=writes)


def _described(summary: str, *parameters: Parameter) -> Describe:
    return Describe(
        summary, SWITCHING, parameters=parameters, errors=(400, 404, 409, 426, 429), tag="exec"
    )


CLOUD_SHELL_ABOUT = _described(
    "A terminal in a task (WebSocket)",
    Parameter("task_id", about="`worker-N`; the first one where it is not given"),
    Parameter("command", about=f"a command line, split as a shell does; {SHELL} if not given"),
)


@routes("GET", CLOUD_SHELL, rule=_rule(), about=CLOUD_SHELL_ABOUT, body=SOCKET)
async def run_cloud_shell(server: Server, call: Call) -> Answer | Talk:
    """A command with a terminal, as ModelArts' CloudShell starts one."""
    call.only("task_id", "command")
    view = server.view(call.caller.workspace.id, call.job_id())
    line = call.text("command", words.COMMAND_BYTES) or SHELL
    try:
        argv = tuple(shlex.split(line))
    except ValueError:
        argv = ()
    if not argv or not argv[0]:
        raise Invalid("field-value", field="command", value=line, expected="a command line")
    return await _begun(server, call, view, call.text("task_id"), Command(argv, terminal=True))


@routes("GET", CONSOLE, rule=_rule(), about=CLOUD_SHELL_ABOUT, body=SOCKET)
async def run_console_shell(server: Server, call: Call) -> Answer | Talk:
    """The same where ModelArts' own console asks for it."""
    return await run_cloud_shell(server, call)


@routes(
    "GET",
    OWN,
    rule=_rule(),
    body=SOCKET,
    about=_described(
        "Run a command in a task (WebSocket)",
        Parameter("task", about="`worker-N`; the first one where it is not given"),
        Parameter("argv", about="the command and its arguments, a JSON list of texts"),
        Parameter("terminal", {"type": "string", "enum": ["0", "1"]}, "whether it gets a terminal"),
        Parameter("stdin", {"type": "string", "enum": ["0", "1"]}, "whether it gets a stdin"),
        Parameter("columns", NUMBER),
        Parameter("rows", NUMBER),
        Parameter("term", about="the kind of terminal (TERM)"),
    ),
)
async def run_command(server: Server, call: Call) -> Answer | Talk:
    """A command of any kind."""
    call.only("task", "argv", "terminal", "stdin", "columns", "rows", "term")
    view = server.view(call.caller.workspace.id, resolve(server, call))
    command = Command(
        _argv(call),
        terminal=call.choice("terminal", "0", "1") == "1",
        stdin=call.choice("stdin", "0", "1") == "1",
        columns=call.number("columns", 80, 1, words.MOST_SIZE),
        rows=call.number("rows", 24, 1, words.MOST_SIZE),
        term=call.text("term", 64),
    )
    return await _begun(server, call, view, call.text("task"), command)


def _argv(call: Call) -> tuple[str, ...]:
    text = call.text("argv", words.COMMAND_BYTES)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    good = isinstance(found, list) and found and all(isinstance(one, str) for one in found)
    if not good or not found[0] or any("\0" in one for one in found):
        raise Invalid(
            "field-value",
            field="argv",
            value=text[:200],
            expected="a JSON list of texts, the first of them a command",
        )
    return tuple(found)


STATUS_ABOUT = Describe(
    "Whether commands can be run in a job now", {200: ALLOWED}, tag="exec", errors=(404,)
)


@routes("GET", f"{CLOUD_SHELL}/status", rule=_rule(writes=False), about=STATUS_ABOUT)
async def show_exec_status(server: Server, call: Call) -> Answer | Talk:
    """Whether commands can be run in a job now."""
    view = server.view(call.caller.workspace.id, call.job_id())
    return json_reply({"access": {"allow": _allowed(server, view)}})


@routes("GET", f"{CONSOLE}/status", rule=_rule(writes=False), about=STATUS_ABOUT)
async def show_shell_status(server: Server, call: Call) -> Answer | Talk:
    """The same below the path of ModelArts' own console."""
    return await show_exec_status(server, call)


@routes("GET", f"{CONSOLE_JOBS}/status", rule=_rule(writes=False), about=STATUS_ABOUT)
async def show_console_status(server: Server, call: Call) -> Answer | Talk:
    """The same where that one asks for it among its calls on jobs."""
    return await show_exec_status(server, call)


def _allowed(server: Server, view: JobView) -> bool:
    with contextlib.suppress(PlatformError):
        flow.check(server.platform, view, "worker-0")
        return True
    return False


def _live(view: JobView, *, noted: bool) -> None:
    if not noted:  # it has ended in between
        raise Refused("exec-job-not-running", job=view.job.id, state=State.COLLECTING)


async def _begun(
    server: Server, call: Call, view: JobView, task: str, command: Command
) -> Answer | Talk:
    task = task or "worker-0"
    flow.check(server.platform, view, task)
    if server.executions >= MOST:
        raise Refused("exec-too-many", http=429, count=server.executions)
    server.executions += 1
    try:
        noted = flow.note(server.platform, view, task, call.caller, command.argv[0])
        _live(view, noted=await server.durable(noted))
        execution = await server.on_executor(flow.execute, server.platform, view, task, command)
    except BaseException:
        server.executions -= 1
        raise
    held = _Held(server, view, task, call.caller, command.argv[0], execution)
    return Talk(held.hold, held.end, words.PROTOCOLS)


@dataclass(slots=True)
class _Held:
    """A command and the WebSocket of whoever runs it."""

    server: Server
    view: JobView
    task: str
    caller: Caller
    name: str
    execution: Execution
    _code: int | None = field(default=None, init=False)

    async def hold(self, socket: Socket) -> None:
        """Carry messages both ways until one side ends."""
        self.execution.wire.setblocking(False)
        tasks = [asyncio.ensure_future(one) for one in (self._up(socket), self._down(socket))]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            closing = next((one.result() for one in done if one.exception() is None), None)
            if closing is not None:
                await socket.close(*closing)
        finally:
            for one in tasks:
                one.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.end()

    async def end(self) -> None:
        """End the command if it runs, and record how it went."""
        try:
            await self.server.on_executor(self.execution.close)
        finally:
            self.server.executions -= 1
        flow.note_end(
            self.server.platform, self.view, self.task, self.caller, self.name, self._code
        )

    async def _up(self, socket: Socket) -> tuple[int, str] | None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                data = await socket.receive()
                if len(data) > words.MESSAGE_BYTES:
                    return TOO_BIG, f"a message of more than {words.MESSAGE_BYTES} bytes"
                if data:
                    await loop.sock_sendall(self.execution.wire, data)
        except Hung:
            return None
        except OSError:
            # It reads no more: its last words are on their way down.
            await asyncio.Event().wait()
        return None

    async def _down(self, socket: Socket) -> tuple[int, str] | None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(Hung, OSError):
            while data := await loop.sock_recv(self.execution.wire, words.MESSAGE_BYTES):
                await socket.send(data)
                if data[0] == words.STATUS:
                    self._code = words.how_ended(data[1:])[0]
                    return NORMAL, ""
            return GOING_AWAY, "the command's process has ended"
        return None
