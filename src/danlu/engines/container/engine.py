"""The container engine: the process engine's task directories and agents, programs in containers.

What differs is what an agent is told (`ContainerPlan`), how a task is ended (its container goes
too), and that a gang has a network. The server asks the runtime for little: agents make and remove
the containers, and what is seen of a task is read from its directory.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from danlu.engines.container.networks import Networks, host_names
from danlu.engines.container.runtime import Runtime, look
from danlu.engines.process import ProcessEngine, ending
from danlu.engines.process.reading import identity_of
from danlu.engines.process.task import Ends
from danlu.model.codec import from_json
from danlu.model.errors import EngineError
from danlu.model.resources import Offer
from danlu.model.script import Layout, TaskPlan
from danlu.node import containment, identity, places
from danlu.node.container.api import Api, RuntimeAway, RuntimeRefused, part
from danlu.node.container.box import OWNER_LABEL, TASK_LABEL, Box
from danlu.node.container.image import USUAL_PATH
from danlu.node.directory import read_json
from danlu.ports import task_directory as files
from danlu.ports.engine import ISOLATION, Launch, Powers, Ref
from danlu.ports.task_directory import AgentPlan, ContainerPlan, Isolation, Storing

log = logging.getLogger(__name__)

PLAN_BYTES = 32 << 20


def _no_reference(_image_id: str) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class OwnImages:
    """The images of ours: where they lie, and the runtime's name of one that was built, by its id
    (empty = it was not).
    """

    root: str = ""
    reference_of: Callable[[str], str] = _no_reference


class ContainerEngine(ProcessEngine):
    """Runs tasks in containers of the runtime that listens at `socket`. `image` is the image of
    tasks that name none, `own` are ours.
    """

    def __init__(
        self,
        root: Path,
        socket: str,
        objects: Mapping[str, str],
        *,
        image: str = "",
        own: OwnImages = OwnImages(),
        offer: Offer | None = None,
        storing: Storing = Storing(),  # noqa: B008 -- it cannot be changed
        isolation: Isolation = Isolation(),  # noqa: B008 -- it cannot be changed
    ) -> None:
        self._socket = socket
        self._image = image
        self._own = own
        self._api = Api(socket)
        self._runtime: Runtime | None = None
        root = root.absolute()
        self._facts = str(root / "images")
        digest = hashlib.sha256(str(root / "tasks").encode()).hexdigest()[:10]
        self._prefix = f"danlu-{digest}-"
        self._networks = Networks(self._api, self._facts)
        super().__init__(
            root,
            _no_environment,
            objects,
            offer=offer,
            storing=storing,
            images=own.root,
            # The container is the isolation: the agent itself makes no namespaces.
            isolation=replace(isolation, namespaces=False),
        )
        self._ends = Ends(self._left, self._end)
        threading.Thread(target=self._sweep, name="engine-sweep", daemon=True).start()

    @property
    def powers(self) -> Powers:
        """Paths are always ModelArts'; limits are held as far as the runtime says."""
        try:
            unenforced = self._known_runtime().unenforced
        except EngineError:
            unenforced = ISOLATION
        return Powers(
            literal_paths=True,
            unenforced=unenforced,
            local_paths=True,
            endpoints=True,
            images=True,
        )

    def layout(self, ref: Ref, plan: TaskPlan) -> Layout:
        """The layout that `plan` would get; the image says which Python it is."""
        return containment.literal(self._layout(ref, plan))

    def launch(self, launches: Sequence[Launch]) -> None:
        """Start all tasks or none; a gang gets its network first."""
        self._known_runtime()
        super().launch(launches)

    def remove(self, ref: Ref) -> None:
        """End the task if it runs, and delete its container and directory; with the last one of its
        attempt, their network.
        """
        super().remove(ref)
        start = f"{ref.job_id}-{ref.attempt}-"
        if not any(name.startswith(start) for name in self._names()):
            self._networks.remove(self._network(ref))

    # what differs

    def _known_runtime(self) -> Runtime:
        self._runtime = self._runtime or look(self._socket)
        return self._runtime

    def _layout(self, ref: Ref, plan: TaskPlan) -> Layout:  # noqa: ARG002 -- the image has it
        return places.layout(str(self._path(ref)), python="python", path=USUAL_PATH)

    def _whole(self, ref: Ref, plan: TaskPlan) -> AgentPlan:
        runtime = self._known_runtime()
        names = host_names(ref.job_id, max(plan.node_count, ref.task + 1))
        container = ContainerPlan(
            self._socket,
            self._prefix + ref.name,
            self._reference(plan),
            self._facts,
            names[ref.task],
            gpu_driver=runtime.gpu_driver or "cdi",
            rootless=runtime.rootless,
        )
        if plan.node_count > 1:
            network = self._network(ref)
            addresses = self._networks.make(network, len(names))
            container = replace(
                container,
                network=network,
                address=addresses[ref.task],
                hosts=dict(zip(names, addresses, strict=True)),
            )
            plan = replace(plan, hosts=names, addresses=addresses)
        else:
            plan = replace(plan, hosts=("127.0.0.1",))
            # Made by the agent: it waits for a runtime that is away.
            container = replace(container, network=self._network(ref))
        return replace(super()._whole(ref, plan), plan=plan, container=container)

    def _reference(self, plan: TaskPlan) -> str:
        """How the runtime is asked for a task's image."""
        if not plan.image:
            return plan.engine.image_url or self._image
        found = self._own.reference_of(plan.image)
        if not found:
            raise EngineError("image-not-built", image=plan.image_name or plan.image)
        return found

    def _network(self, ref: Ref) -> str:
        return f"{self._prefix}{ref.job_id}-{ref.attempt}"

    def _names(self) -> Iterable[str]:
        return [path.name for path in self._tasks_root.iterdir() if not path.name.startswith(".")]

    # ending

    def _left(self, path: Path) -> bool:
        """Whether a container of the task in `path` may still run something."""
        try:
            box = self._box(path)
            found = None if box is None else box.find()
        except (RuntimeAway, RuntimeRefused):
            return True
        init = identity_of((read_json(path / files.TASK) or {}).get("shim"))
        return identity.alive(init) or (found is not None and found.running)

    def _end(self, path: Path) -> bool:
        """End agent and program, then remove the container: an agent that lived would make it
        again.
        """
        if not ending.end(path):
            return False
        try:
            box = self._box(path)
            if box is not None:
                box.remove()
        except (RuntimeAway, RuntimeRefused) as error:
            log.warning("container of %s: %s", path.name, error)
            return False
        return True

    def _box(self, path: Path) -> Box | None:
        data = read_json(path / files.PLAN, PLAN_BYTES)
        with suppress(TypeError, ValueError, KeyError, AttributeError):
            plan = from_json(AgentPlan, data)
            if plan.container is not None:
                return Box(self._api, plan.container, plan.plan.token)
        return None

    def _sweep(self) -> None:
        """Remove what is ours and belongs to no task: a call that was under way when its agent was
        killed, a network that outlived its gang.
        """
        query = {"all": "true", "filters": f'{{"label": ["{TASK_LABEL}"]}}'}
        with suppress(RuntimeAway, RuntimeRefused, OSError):
            known = set(self._names())
            for one in self._api.call("GET", "/containers/json", query) or ():
                labels = one.get("Labels") or {}
                name = str(labels.get(TASK_LABEL, "")).removeprefix(self._prefix)
                if labels.get(OWNER_LABEL) == self._facts and name not in known:
                    self._api.call("DELETE", f"/containers/{part(one['Id'])}", {"force": "true"})
            gangs = {name.rpartition("-")[0] for name in known}
            for network in self._networks.known():
                if network.removeprefix(self._prefix) not in gangs:
                    self._networks.remove(network)


def _no_environment(_plan: TaskPlan) -> Path:
    raise EngineError("engine-failed", detail="images hold the environments of containers")
