"""danlu image: which software runs on which machine. No server is asked."""

from __future__ import annotations

import sys
import sysconfig

from danlu.faces.cli.failure import OK, REFUSED, USAGE, Failure
from danlu.faces.cli.machine import Machine, wheel_architecture
from danlu.faces.cli.session import Session
from danlu.faces.cli.texts import printable
from danlu.model.image import CHANNELS, PYPI, Answer, Ask, Rejection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from danlu.model.texts import Language

NONE = "none"
MOST_ROWS = 12


def explain(
    session: Session,
    *,
    gpus: tuple[str, ...],
    driver: str | None,
    glibc: str | None,
    arch: str | None,
    channel: str | None,
    **others: Any,
) -> int:
    """Say which build of PyTorch does, or why none does."""
    from danlu.wiring import host

    machine = Machine()
    cards, own_driver, remark = _gpus(machine, gpus, session.language)
    if glibc is None:
        glibc = machine.glibc()
    if glibc is None:
        raise Failure(USAGE, "image-glibc-unknown")
    wanted = Ask(
        torch=others["torch"] or "",
        cuda=others["cuda"] or "",
        gpus=cards,
        driver=_driver(driver, own_driver),
        python=others["python"] or own_python(),
        glibc=glibc,
        arch=wheel_architecture(arch) if arch else machine.architecture,
        channels=(PYPI,) if channel in (None, PYPI) else CHANNELS,
    )
    answer = host.image_for(wanted)
    if session.json:
        session.put_json(record(answer, session.language))
    elif session.quiet:
        if answer.choice is not None:
            session.put(f"{answer.choice.torch} {answer.choice.cuda} {answer.choice.channel}")
    else:
        _show(session, wanted, answer, remark)
    return OK if answer.choice is not None else REFUSED


def own_python() -> str:
    """The version of this interpreter, as wheels tell them apart."""
    free_threaded = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    return f"{sys.version_info.major}.{sys.version_info.minor}{free_threaded}"


def record(answer: Answer, language: Language) -> dict[str, object]:
    """The answer for programs: sentences are in `language`, everything else is the same in all."""
    choice = answer.choice
    return {
        "choice": choice
        and {
            "torch": choice.torch,
            "cuda": choice.cuda,
            "channel": choice.channel,
            "reasons": [note.text(language) for note in choice.reasons],
        },
        "warnings": [note.text(language) for note in answer.warnings],
        "rejected": [
            {
                "torch": one.torch,
                "cuda": one.cuda,
                "rule": str(one.rule),
                "found": one.found,
                "needs": one.needs,
                "fix": one.fix_text(language),
            }
            for one in answer.rejected
        ],
    }


def _gpus(
    machine: Machine, given: tuple[str, ...], language: Language
) -> tuple[tuple[str, ...], str, str]:
    """The GPUs that are meant, the driver of this machine, and why there are none on it."""
    if given:
        cards = () if given == (NONE,) else given
        return cards, machine.driver() or "", ""
    from danlu.wiring import host

    found = host.gpu_inventory()
    models = tuple(dict.fromkeys(gpu.model for gpu in found.gpus))
    remark = found.reason(language)
    return models, found.driver or machine.driver() or "", remark


def _driver(given: str | None, own: str) -> str:
    if given is None:
        return own
    return "" if given == NONE else given


def _show(session: Session, wanted: Ask, answer: Answer, remark: str) -> None:
    language = session.language
    session.put(session.text("image-for", asked=_asked(session, wanted)))
    choice = answer.choice
    if choice is None:
        session.put(session.text("image-none"))
    else:
        found = {"torch": choice.torch, "cuda": choice.cuda, "channel": choice.channel}
        session.put(session.text("image-choice", **found))
        for note in choice.reasons:
            session.put(session.text("image-because", reason=note.text(language)))
    for note in answer.warnings:
        session.put(session.text("image-warning", warning=note.text(language)))
    if remark:
        session.put(session.text("image-warning", warning=remark))
    _show_rejected(session, answer)


def _show_rejected(session: Session, answer: Answer) -> None:
    """All of a few builds; of many, which only a choice leaves uninteresting, the newest."""
    rejected = answer.rejected
    shown = rejected
    if len(rejected) > MOST_ROWS:
        shown = () if answer.choice is not None else rejected[:MOST_ROWS]
    if shown and answer.choice is not None:
        session.put(session.text("image-others"))
    rows = [_row(one, session.language) for one in shown]
    session.terminal.table(session.text("columns.image").split("|"), rows)
    if len(rejected) > len(shown):
        session.put(session.text("image-more", count=len(rejected) - len(shown)))


def _row(one: Rejection, language: Language) -> tuple[str, ...]:
    cells = (one.torch, one.cuda, str(one.rule), one.found, one.needs, one.fix_text(language))
    return tuple(printable(cell) or "-" for cell in cells)


def _asked(session: Session, wanted: Ask) -> str:
    driver = wanted.driver
    parts = [
        ", ".join(wanted.gpus) or session.text("image-no-gpus"),
        session.text("image-asked-driver", version=driver)
        if driver
        else session.text("image-no-driver"),
        f"Python {wanted.python}",
        f"glibc {wanted.glibc}",
        wanted.arch,
        " + ".join(wanted.channels),
    ]
    if wanted.torch or wanted.cuda:
        parts.insert(0, " ".join(filter(None, (f"torch {wanted.torch}".strip(), wanted.cuda))))
    return session.text("separator").join(parts)
