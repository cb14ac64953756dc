"""What is refused at submit, and that nothing is half-created."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from danlu.engines.memory import MemoryEngine
from danlu.engines.memory_script import Script
from danlu.flow.catalog import Environment
from danlu.flow.explain import preview, why
from danlu.flow.platform import Limits
from danlu.flow.submit import submit
from danlu.images import installed, matrix
from danlu.model.errors import Invalid, PlatformError, Refused, Unavailable
from danlu.model.flavor import Flavor
from danlu.model.image import Rejection
from danlu.model.job import EngineChoice, Input, JobSpec, Output
from danlu.model.resources import GIB, Gpu, Shape
from danlu.model.url import LocalUrl, ObjectUrl
from danlu.node.reach import closed_to_all, unwritable
from danlu.ports.engine import Powers
from danlu.ports.records import JobQuery, Records, Submission, Submitted
from tests.flow.house import NODE, House


def refused(house: House, **changes: Any) -> PlatformError:
    with pytest.raises(PlatformError) as caught:
        house.submit(**changes)
    assert house.records.jobs("p1", JobQuery()).total == 0
    assert house.board.entries() == []
    return caught.value


def test_an_unknown_flavor_lists_the_known_ones(house: House) -> None:
    error = refused(house, flavor="nope")
    assert isinstance(error, Invalid)
    assert "spec.resource.flavor_id" in str(error)
    assert "danlu.cpu.8u" in str(error)


def test_a_flavor_that_does_not_fit_says_what_is_there(house: House) -> None:
    error = refused(house, flavor="danlu.cpu.8u", node_count=2)
    assert isinstance(error, Refused)
    assert "8 CPUs" in str(error)
    assert "danlu.cpu.4u" in str(error)


def test_a_bucket_of_another_project(house: House) -> None:
    error = refused(house, inputs=(Input("data", ObjectUrl("theirs", "x/")),))
    assert "algorithm.inputs[0].remote.obs.obs_url" in str(error)
    assert "theirs" in str(error)
    assert "danlu" in str(error)


def test_an_input_that_does_not_exist(house: House) -> None:
    error = refused(house, inputs=(Input("data", ObjectUrl("danlu", "none/")),))
    assert "obs://danlu/none/" in str(error)


def test_an_input_may_be_one_object(house: House) -> None:
    house.objects.put("danlu", "data/one.bin", b"1")
    house.submit(inputs=(Input("data", ObjectUrl("danlu", "data/one.bin")),))


def test_a_code_directory_or_boot_file_that_is_not_there(house: House) -> None:
    code = ObjectUrl("danlu", "code/x/app/")
    assert "code_dir" in str(refused(house, code=code, boot_file="train.py", command=""))
    house.objects.put("danlu", "code/x/app/other.py", b"")
    error = refused(house, code=code, boot_file="train.py", command="")
    assert "boot_file" in str(error)
    assert "train.py" in str(error)


def test_an_unknown_engine_lists_the_known_ones(house: House) -> None:
    assert "default" in str(refused(house, engine=EngineChoice(engine_id="pytorch-9")))
    assert "image_url" in str(refused(house, engine=EngineChoice(image_url="x")))


def test_a_job_that_must_be_isolated_is_refused_where_it_cannot_be(house: House) -> None:
    error = refused(house, require_isolation=True)
    assert isinstance(error, Refused)
    assert "memory, cpu, pids, namespaces, landlock" in str(error)
    assert "doctor" in str(error)
    house.submit("without")


def test_a_server_may_want_every_job_isolated(house: House) -> None:
    house.platform = replace(house.platform, limits=Limits(require_isolation=True))
    assert "require_isolation" in str(refused(house))
    engine = MemoryEngine(house.clock, powers=Powers(unenforced=()))
    house.platform = replace(house.platform, engine=engine)
    job = house.records.job("p1", house.submit("isolated"))
    assert job.job.spec.require_isolation


def test_local_paths_need_a_server_that_takes_them(house: House) -> None:
    house.submit(outputs=(Output("o", LocalUrl("/tmp/o")),))
    house.platform = replace(house.platform, limits=Limits(local_paths=False))
    with pytest.raises(Refused, match="allow_local_paths"):
        house.submit("second", outputs=(Output("o", LocalUrl("/tmp/other")),))


@pytest.mark.parametrize("other", ["out/", "out", "out/below/", ""])
def test_two_live_jobs_may_not_share_an_output(house: House, other: str) -> None:
    house.scripts["a"] = Script(duration_s=10)
    first = house.submit("a", outputs=(Output("o", ObjectUrl("danlu", "out/")),))
    with pytest.raises(Refused, match=first):
        house.submit("b", outputs=(Output("o", ObjectUrl("danlu", other)),))
    house.submit("c", outputs=(Output("o", ObjectUrl("danlu", "output/")),))
    for _ in range(4):
        house.turn(10)
    house.submit("b", outputs=(Output("o", ObjectUrl("danlu", other)),))


class Slow:
    """Records to which submits are still on their way."""

    def __init__(self, records: Any) -> None:
        self._records = records
        self.waiting: list[tuple[Submission, Future[Submitted]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._records, name)

    def submit(self, submission: Submission) -> Future[Submitted]:
        future: Future[Submitted] = Future()
        self.waiting.append((submission, future))
        return future

    def go_on(self) -> None:
        """Let the first arrive."""
        submission, future = self.waiting.pop(0)
        future.set_result(self._records.submit(submission).result())


def test_two_submits_at_once_do_not_both_get_an_output(house: House) -> None:
    slow = Slow(house.records)
    house.platform = replace(house.platform, records=cast("Records", slow))
    spec = JobSpec("j", "danlu.cpu.1u", Shape(1, 1), command="true")
    spec = replace(spec, outputs=(Output("o", ObjectUrl("danlu", "out/")),))

    def send(token: str = "") -> Future[Submitted]:
        return submit(
            house.platform, house.board, house.caller, spec, client_token=token, wake=lambda: None
        )

    first = send("t")
    with pytest.raises(Refused, match=slow.waiting[0][0].job.id):
        send()
    again = send("t")  # the same submit is for the records to tell
    slow.go_on()
    slow.go_on()
    assert first.result().created
    assert not again.result().created
    assert again.result().job == first.result().job
    with pytest.raises(Refused, match=first.result().job.id):
        send()


def test_an_output_of_a_job_that_was_not_recorded_is_free(house: House) -> None:
    slow = Slow(house.records)
    house.platform = replace(house.platform, records=cast("Records", slow))
    spec = JobSpec("j", "danlu.cpu.1u", Shape(1, 1), command="true")
    spec = replace(spec, outputs=(Output("o", ObjectUrl("danlu", "out/")),))
    submit(house.platform, house.board, house.caller, spec, wake=lambda: None)
    slow.waiting.pop()[1].set_exception(Unavailable("records-closed"))

    again = submit(house.platform, house.board, house.caller, spec, wake=lambda: None)
    slow.go_on()
    assert again.result().created


def test_a_full_queue_asks_to_wait(house: House) -> None:
    house.platform = replace(house.platform, limits=Limits(queued_jobs=2))
    house.submit("a")
    house.submit("b")
    with pytest.raises(Refused) as caught:
        house.submit("c")
    assert caught.value.http == 429
    assert "2" in str(caught.value)


def test_the_same_client_token_is_the_same_job(house: House) -> None:
    """(case 28)"""
    assert house.submit(token="t") == house.submit(token="t")
    assert house.records.jobs("p1", JobQuery()).total == 1
    assert len(house.board.entries()) == 1
    house.turn()
    assert house.engine.calls.count("launch") == 1


def test_a_submission_that_is_sent_again_is_not_in_its_own_way(house: House) -> None:
    """(fault 43) Its first sending made the job that writes to its output and fills the queue."""
    house.platform = replace(house.platform, limits=Limits(queued_jobs=1))
    outputs = (Output("o", ObjectUrl("danlu", "out/")),)
    first = house.submit(token="t", outputs=outputs)

    assert house.submit(token="t", outputs=outputs) == first
    with pytest.raises(Refused):
        house.submit(token="u", outputs=outputs)
    assert house.records.jobs("p1", JobQuery()).total == 1


def test_a_waiting_job_has_a_reason_and_a_position(house: House) -> None:
    house.scripts["big"] = Script(duration_s=None)
    big = house.submit("big", flavor="danlu.cpu.8u")
    house.turn()
    first = house.submit("first", flavor="danlu.cpu.2u")
    second = house.submit("second", flavor="danlu.cpu.1u")
    house.turn()
    found = why(house.platform, house.board, first)
    assert found is not None
    assert (found.key, found.position) == ("waiting-resource", 1)
    assert found.params["holders"] == big[:8]
    behind = why(house.platform, house.board, second)
    assert behind is not None
    assert behind.position == 2
    assert why(house.platform, house.board, big) is None


def test_a_dry_run_shows_what_would_start_and_makes_nothing(house: House) -> None:
    spec = JobSpec("j", "danlu.cpu.2u", Shape(2, 1), node_count=2, command="echo hi")
    shown = preview(house.platform, spec)
    assert shown is not None
    assert [world.env["VC_TASK_INDEX"] for world in shown.worlds] == ["0", "1"]
    assert house.records.jobs("p1", JobQuery()).total == 0
    assert house.engine.known() == []


def with_gpus(house: House, torch: str, *models: str) -> None:
    """Nodes with one GPU each, and an environment with that torch."""
    house.nodes = [
        replace(NODE, node=f"gpu-{i}", gpus=(Gpu(f"GPU-{i}", 0, model, 16 * GIB),))
        for i, model in enumerate(models)
    ]
    house.restart()
    environments = [Environment("default", "/usr", "3.11", torch)]
    catalog = replace(house.platform.catalog, environments=lambda _: environments)

    def against(version: str, gpus: tuple[str, ...]) -> Rejection | None:
        return installed.against(matrix.packaged(), version, gpus, "580.65.06", "x86_64")

    house.platform = replace(house.platform, catalog=catalog, against_torch=against)


@pytest.mark.parametrize(
    ("torch", "said"),
    [
        ("2.13.0+cpu", "torch 2.13.0 with cpu breaks the rule 'gpu'"),
        ("2.14.1", "found Tesla V100 (sm_70)"),
        ("2.7.1+cu128", "cu126"),
    ],
)
def test_a_torch_that_cannot_run_on_the_flavors_gpu_is_refused(
    house: House, torch: str, said: str
) -> None:
    """(case 2) (case 3) Before anything waits in a queue for that GPU."""
    with_gpus(house, torch, "Tesla V100")
    error = refused(house, flavor="danlu.gpu.v100.1")
    assert isinstance(error, Refused)
    assert error.key == "image-does-not-fit"
    assert said in str(error)
    house.submit(flavor="danlu.cpu.1u")


@pytest.mark.parametrize("torch", ["2.8.0", "2.14.1+cu126", "2.9.0a0+git12", "2.99.0", ""])
def test_what_runs_or_is_not_known_is_taken(house: House, torch: str) -> None:
    with_gpus(house, torch, "Tesla V100")
    house.submit(flavor="danlu.gpu.v100.1")


def test_one_model_that_runs_it_is_enough(house: House) -> None:
    with_gpus(house, "2.14.1", "Tesla V100", "NVIDIA A100-SXM4-80GB")
    house.platform = replace(
        house.platform,
        catalog=replace(house.platform.catalog, configured=(Flavor("any-gpu", Shape(1, GIB, 1)),)),
    )
    house.submit(flavor="any-gpu")


def test_a_place_that_is_closed_is_refused_by_name(house: House) -> None:
    """The server's own data, what lies in it, and what holds it."""
    data = str(house.root.resolve())
    link = house.root.parent / f"{house.root.name}-link"
    link.symlink_to(house.root)
    house.platform = replace(
        house.platform, closed=lambda path: closed_to_all(path, (data,), but=f"{data}/demo")
    )
    held = str(house.root.parent)
    for path in (data, f"{data}/objects", held, "/", "/etc/shadow", "/etc", f"{link}/objects"):
        for channels in (
            {"inputs": (Input("data", LocalUrl(path)),)},
            {"outputs": (Output("out", LocalUrl(path)),)},
        ):
            problem = refused(house, **channels)
            assert (problem.key, problem.params["value"]) == ("path-closed", path)
    apart = house.root.parent / f"{house.root.name}-apart"
    apart.mkdir()
    assert house.submit(inputs=(Input("data", LocalUrl(str(apart))),))


@pytest.mark.parametrize("flavor", ["", "danlu.cpu.1u", "no.such"])
def test_while_no_node_answers_a_submit_is_put_off_and_not_refused(
    house: House, flavor: str
) -> None:
    house.engine.faults.deaf = True
    with pytest.raises(Unavailable) as caught:
        house.platform.catalog.flavor(flavor, 1, "flavor")
    assert caught.value.key == "no-node-answers"
    house.engine.faults.deaf = False
    assert house.platform.catalog.flavor("", 1, "flavor").id


def test_an_output_that_cannot_be_written_is_refused_before_it_is_waited_for(
    house: House, tmp_path: Path
) -> None:
    house.platform = replace(house.platform, unwritable=unwritable)
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file/below/it"):
        error = refused(house, outputs=(Output("out", LocalUrl(str(path))),))
        assert (error.key, error.http) == ("path-unwritable", 409)
        assert f"cannot write to {tmp_path / 'file'};" in str(error)
    house.submit(outputs=(Output("out", LocalUrl(str(tmp_path / "not/there/yet"))),))
    assert not (tmp_path / "not").exists()
