"""Which build of PyTorch is wanted for which machine, and the answer with its reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from danlu.model.errors import Refused
from danlu.model.texts import Language, text

PYPI, INDEX = "pypi", "index"
CHANNELS = (PYPI, INDEX)
"""Where wheels come from: PyPI, or PyTorch's own index of builds for other CUDA versions."""
CPU = "cpu"
"""The tag of builds without CUDA."""


class Rule(StrEnum):
    """What a build is measured by, in the order in which it is."""

    BUILD = "build"
    PYTHON = "python"
    GLIBC = "glibc"
    ARCH = "arch"
    UNVERIFIED = "unverified"
    GPU = "gpu"
    CUDNN = "cudnn"
    DRIVER = "driver"
    CHANNEL = "channel"


@dataclass(frozen=True, slots=True)
class Ask:
    """What is wanted, and the machine on which it has to run.

    `torch` is a version (2.8.0), a series (2.8) or empty for any; `cuda` a tag (cu128, cpu) or
    empty for any; a GPU is a model's name or its compute capability (sm_70). Without a `driver`
    the answer is a plan.
    """

    torch: str = ""
    cuda: str = ""
    gpus: tuple[str, ...] = ()
    driver: str = ""
    python: str = "3.11"
    glibc: str = "2.28"
    arch: str = "x86_64"
    channels: tuple[str, ...] = (PYPI,)


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence, by its key and the values in it."""

    key: str
    params: Mapping[str, str] = field(default_factory=dict)

    def text(self, language: Language = "en") -> str:
        """The sentence for a person."""
        return text(self.key, language, **self.params)


@dataclass(frozen=True, slots=True)
class Change:
    """One change of an ask; empty = stays as it is. `channel` is one to allow beside."""

    torch: str = ""
    cuda: str = ""
    channel: str = ""
    driver: str = ""
    python: str = ""
    glibc: str = ""
    arch: str = ""
    gpus: tuple[str, ...] = ()

    def applied(self, ask: Ask) -> Ask:
        """The ask with the change made."""
        channels = ask.channels
        if self.channel and self.channel not in channels:
            channels = (*channels, self.channel)
        return replace(
            ask,
            torch=self.torch or ask.torch,
            cuda=self.cuda or ask.cuda,
            gpus=self.gpus or ask.gpus,
            driver=self.driver or ask.driver,
            python=self.python or ask.python,
            glibc=self.glibc or ask.glibc,
            arch=self.arch or ask.arch,
            channels=channels,
        )

    def text(self, language: Language = "en") -> str:
        """The change for a person."""
        values = {
            name: value
            for name in ("torch", "cuda", "driver", "python", "glibc", "arch")
            if (value := str(getattr(self, name)))
        }
        if self.gpus:
            values["gpus"] = ", ".join(self.gpus)
        if self.torch or self.cuda:
            kind = "torch" if self.torch else "cuda"
            suffix = f"-{self.channel}" if self.channel else ""
            return text(f"image-change-{kind}{suffix}", language, **values)
        (name,) = values.keys() or (f"channel-{self.channel}",)
        return text(f"image-change-{name}", language, **values)


@dataclass(frozen=True, slots=True)
class Choice:
    """The build to take, and why."""

    torch: str
    cuda: str
    channel: str
    reasons: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Rejection:
    """A build that does not do: the first rule that it breaks, what was found, what the rule needs.

    Any single one of `fix` makes the rule hold; `advice` says what to do where no change of the
    ask can be named.
    """

    torch: str
    cuda: str
    rule: Rule
    found: str
    needs: str
    fix: tuple[Change, ...] = ()
    advice: Note | None = None

    def fix_text(self, language: Language = "en") -> str:
        """The nearest changes for a person, the nearest first."""
        parts = [change.text(language) for change in self.fix]
        if self.advice is not None:
            parts.append(self.advice.text(language))
        return text("image-change-or", language).join(parts)


@dataclass(frozen=True, slots=True)
class Answer:
    """A choice, or none; either way every build that was looked at and does not do."""

    choice: Choice | None
    warnings: tuple[Note, ...] = ()
    rejected: tuple[Rejection, ...] = ()


class DoesNotFit(Refused):
    """An image that could not work where it is meant to, with the nearest change that would do."""

    def __init__(self, image: str, rejection: Rejection) -> None:
        super().__init__(
            "image-does-not-fit",
            image=image,
            torch=rejection.torch,
            cuda=rejection.cuda,
            rule=str(rejection.rule),
            found=rejection.found,
            needs=rejection.needs,
        )
        self.rejection = rejection

    def message(self, language: Language = "en") -> str:
        """The rule that is broken and what to change."""
        fix = self.rejection.fix_text(language)
        return text(self.key, language, **self.params, fix=fix)


@dataclass(frozen=True, slots=True)
class Realised:
    """An environment that is ready. `python` is the version that it runs on, `system` what the
    host is: packages are the lock's to the byte, the system is the host's.
    """

    id: str
    name: str
    backend: str
    python: str
    torch: str
    packages: int
    size_bytes: int
    digest: str
    system: str
    made_at: int
    took_s: float
    realisation: str = "venv"
    os: str = "host"
    parent: str = ""
    """The image that it was made from, where a job's own packages were added."""
    extras: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Built:
    """An image as a container image. `reference` is for people; `oci_id`, the digest of its
    configuration, is what it is for sure. `base` is what was asked for, `base_id` what that was,
    and `apt` are the packages of Debian that are in it, as name=version.
    """

    id: str
    name: str
    reference: str
    oci_id: str
    base: str
    base_id: str
    apt: tuple[str, ...]
    size_bytes: int
    builder: str
    made_at: int
    took_s: float


@dataclass(frozen=True, slots=True)
class ImageView:
    """An image with what is known of it on this machine: what faces show. Instants are UTC ms, 0 =
    never.
    """

    id: str
    name: str
    backend: str
    torch: str
    python: str
    packages: int
    arch: str = "x86_64"
    built_in: bool = False
    created_at: int = 0
    description: str = ""
    realised: Realised | None = None
    path: str = ""
    used_at: int = 0
    used_by: tuple[str, ...] = ()
    built: Built | None = None


@dataclass(frozen=True, slots=True)
class Damage:
    """A file that is not what it has to be; `found` is empty where it is missing, `needs` where it
    should not be there.
    """

    path: str
    package: str
    needs: str
    found: str


@dataclass(frozen=True, slots=True)
class Freed:
    """Environments that were removed, and the bytes that images took before and after."""

    removed: tuple[Realised, ...]
    before: int
    after: int
