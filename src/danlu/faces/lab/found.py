"""Notebooks as the records know them, for the proxy."""

from __future__ import annotations

from functools import partial

from danlu.faces.lab.instance import NOTHING, Instance, Phase, Sentence
from danlu.flow import explain
from danlu.flow.board import Board
from danlu.flow.platform import Platform
from danlu.model.errors import Missing
from danlu.model.identity import Secret
from danlu.model.notebook import Notebook, State, lab_token
from danlu.model.texts import text
from danlu.ports.engine import LAB, Endpoints
from danlu.ports.records import EventQuery

PHASES = {
    State.CREATING: Phase.STARTING,
    State.STARTING: Phase.STARTING,
    State.RUNNING: Phase.RUNNING,
    State.STOPPING: Phase.STOPPING,
    State.STOPPED: Phase.STOPPED,
    State.CREATE_FAILED: Phase.FAILED,
    State.START_FAILED: Phase.FAILED,
    State.ERROR: Phase.FAILED,
    State.DELETING: Phase.STOPPING,
    State.DELETE_FAILED: Phase.STOPPED,
}


class Found:
    """Looks notebooks up."""

    def __init__(self, platform: Platform, board: Board) -> None:
        self._platform = platform
        self._board = board

    def find(self, workspace: str, notebook: str) -> Instance | None:
        """The notebook as it is now."""
        try:
            one = self._platform.records.notebook(workspace, notebook)
        except Missing:
            return None
        phase = PHASES[one.state]
        if phase is not Phase.RUNNING:
            return Instance(one.id, one.spec.name, one.job_id, phase, detail=self._detail(one))
        entry = self._board.get(one.job_id)
        engine: object = self._platform.engine
        if entry is None or not isinstance(engine, Endpoints):
            # Its job has ended; the notebook will know in a moment.
            return Instance(one.id, one.spec.name, one.job_id, phase)
        connect = partial(engine.endpoint, entry.refs[0], LAB)
        token = Secret(lab_token(entry.key.token))
        return Instance(one.id, one.spec.name, one.job_id, phase, connect, token)

    def _detail(self, one: Notebook) -> Sentence:
        """How far a start is, or why it is in this state."""
        if one.reason is not None:
            return Sentence(one.reason.sentence("en"), one.reason.sentence("zh"))
        if not one.job_id:
            return NOTHING
        waits = explain.why(self._platform, self._board, one.job_id)
        if waits is not None:
            return Sentence(*(text(waits.key, words, **waits.params) for words in ("en", "zh")))
        try:
            told = self._platform.records.events(one.workspace, one.job_id, EventQuery())
        except Missing:
            return NOTHING
        return Sentence(told[-1].sentence("en"), told[-1].sentence("zh")) if told else NOTHING
