"""ModelArts' create body to a job's specification, and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from danlu.model import rules
from danlu.model.attempt import Attempt, AttemptKey, State
from danlu.model.errors import Invalid
from danlu.model.job import Access, EngineChoice, Input, Job, JobSpec, JobView, Output, Parameter
from danlu.model.resources import Shape
from danlu.model.url import LocalUrl, ObjectUrl
from danlu.wire import modelarts_training_reply as replies
from danlu.wire.modelarts_training import Condition, description, job_spec, search
from danlu.wire.modelarts_training_fields import FOREIGN_ANNOTATIONS


def body(**algorithm: Any) -> dict[str, Any]:
    return {"metadata": {"name": "n"}, "algorithm": {"command": "true", **algorithm}}


def refused(sent: dict[str, Any]) -> Invalid:
    with pytest.raises(Invalid) as caught:
        job_spec(sent)
    assert caught.value.message("en")
    assert caught.value.message("zh")
    return caught.value


def put(path: str, value: Any) -> dict[str, Any]:
    """A create body with `value` at a dotted path."""
    sent: dict[str, Any] = {
        "metadata": {"name": "n"},
        "algorithm": {
            "command": "true",
            "inputs": [{"name": "i", "remote": {"obs": {"obs_url": "obs://b/i/"}}}],
            "outputs": [{"name": "o", "remote": {"obs": {"obs_url": "obs://b/o/"}}}],
            "parameters": [{"name": "p", "value": "v"}],
        },
    }
    at: Any = sent
    *parts, last = path.split(".")
    for part in parts:
        at = at[int(part)] if part.isdigit() else at.setdefault(part, {})
    at[int(last) if last.isdigit() else last] = value
    return sent


FULL: dict[str, Any] = {
    "kind": "job",
    "metadata": {
        "name": "full",
        "workspace_id": "0",
        "description": "d",
        "annotations": {"job_template": "Template DL", "key_task": "worker"},
    },
    "algorithm": {
        "code_dir": "/bucket/usr/app/",
        "boot_file": "/bucket/usr/app/src/boot.py",
        "parameters": [
            {
                "name": "lr",
                "value": "0.1",
                "description": "rate",
                "constraint": {
                    "type": "Float",
                    "editable": True,
                    "required": True,
                    "sensitive": False,
                    "valid_type": "None",
                    "valid_range": [],
                },
                "i18n_description": None,
            }
        ],
        "inputs": [
            {
                "name": "data_url",
                "access_method": "env",
                "local_dir": "/cache/data",
                "remote": {"obs": {"obs_url": "s3://bucket/data/"}, "dataset": {"id": ""}},
                "remote_constraint": [],
            }
        ],
        "outputs": [
            {
                "name": "train_url",
                "remote": {"obs": {"obs_url": "obs://bucket/out/"}},
                "prefetch_to_local": True,
                "mode": "upload_periodically",
                "period": 30,
            }
        ],
        "engine": {"engine_id": "default", "install_sys_packages": False},
        "local_code_dir": "/home/ma-user/code",
        "working_dir": "/home/ma-user/code/app",
        "environments": {"A": "1"},
        "policies": {"auto_search": None},
    },
    "spec": {
        "resource": {"flavor_id": "f", "node_count": 2, "pool_id": "", "policy": "regular"},
        "volumes": [],
        "log_export_path": {"obs_url": "obs://bucket/logs/", "host_path": ""},
        "log_export_config": {"version": "v0", "rotation_enabled": False},
        "auto_stop": {"time_unit": "HOURS", "duration": 2},
        "schedule_policy": {"priority": 3, "preemptible": False},
        "custom_metrics": [],
        "notification": {"topic_urn": "", "events": []},
    },
    "endpoints": {"ssh": {"key_pair_names": []}},
    "danlu": {"grace_s": 7, "ssh": False},
}

FULL_SPEC = JobSpec(
    name="full",
    flavor="f",
    shape=Shape(0, 0),
    node_count=2,
    description="d",
    annotations={"job_template": "Template DL", "key_task": "worker"},
    engine=EngineChoice(engine_id="default"),
    code=ObjectUrl("bucket", "usr/app/"),
    boot_file="src/boot.py",
    local_code_dir="/home/ma-user/code",
    working_dir="/home/ma-user/code/app",
    parameters=(Parameter("lr", "0.1"),),
    inputs=(Input("data_url", ObjectUrl("bucket", "data/"), Access.ENV, "/cache/data"),),
    outputs=(Output("train_url", ObjectUrl("bucket", "out/"), prefetch=True),),
    environments={"A": "1"},
    priority=3,
    time_limit_s=7200,
    grace_s=7,
    log_url=ObjectUrl("bucket", "logs/"),
)


def test_every_supported_field_is_understood() -> None:
    assert job_spec(FULL) == FULL_SPEC
    rules.check(job_spec(FULL))


def test_a_body_that_says_almost_nothing_has_the_documented_defaults() -> None:
    spec = job_spec(body())
    assert (spec.node_count, spec.priority, spec.grace_s, spec.flavor) == (1, 1, 30, "")
    assert spec.time_limit_s is None
    assert spec.engine == EngineChoice()


@pytest.mark.parametrize(
    ("code_dir", "boot_file", "relative"),
    [
        ("/b/app/", "/b/app/boot.py", "boot.py"),
        ("/b/app", "/b/app/boot.py", "boot.py"),
        ("obs://b/app/", "/b/app/a/b.py", "a/b.py"),
        ("s3://b/app/", "obs://b/app/boot.py", "boot.py"),
        ("/b/app/", "boot.py", "boot.py"),
        ("/b/app/", "./src/boot.py", "src/boot.py"),
        ("/b/", "/b/boot.py", "boot.py"),
        ("/b/中 文/", "/b/中 文/启 动.py", "启 动.py"),
    ],
)
def test_a_boot_file_is_a_full_path_or_a_relative_one(
    code_dir: str, boot_file: str, relative: str
) -> None:
    spec = job_spec(body(command="", code_dir=code_dir, boot_file=boot_file))
    assert spec.boot_file == relative
    assert str(spec.code).startswith("obs://b/")


@pytest.mark.parametrize(
    "boot_file",
    ["/b/other/boot.py", "/c/app/boot.py", "/b/app/", "/b/app", "../x.py", "a/../b.py", "a//b.py",
     "./", "file:///x.py", "a/./b.py"],
)  # fmt: skip
def test_a_boot_file_outside_the_code_is_refused(boot_file: str) -> None:
    problem = refused(body(command="", code_dir="/b/app/", boot_file=boot_file))
    assert problem.key == "boot-file-outside"


def test_environments_may_be_a_list_of_one_object() -> None:
    assert job_spec(body(environments=[{"A": "1"}])).environments == {"A": "1"}
    assert job_spec(body(environments=[])).environments == {}
    assert refused(body(environments=[{"A": "1"}, {"B": "2"}])).key == "field-type"
    assert refused(body(environments={"A": 1})).params["field"] == "algorithm.environments.A"


def test_paths_of_the_machine_are_taken_for_channels() -> None:
    spec = job_spec(put("algorithm.inputs.0.remote.obs.obs_url", "file:///data/x"))
    assert spec.inputs[0].url == LocalUrl("/data/x")
    assert refused(body(code_dir="file:///code", boot_file="x.py")).key == "obs-url"


REFUSED_BY_NAME: list[tuple[str, Any]] = [
    ("kind", "hetero_job"),
    ("kind", "visualization_job"),
    ("metadata.workspace_id", "3"),
    ("metadata.training_experiment_reference", {"name": "e"}),
    ("algorithm.id", "an-algorithm"),
    ("algorithm.subscription_id", "s"),
    ("algorithm.item_version_id", "v"),
    ("algorithm.autosearch_config_path", "/b/x"),
    ("algorithm.autosearch_framework_path", "/b/x"),
    ("algorithm.policies", {"auto_search": {"skip_search_params": "x"}}),
    ("algorithm.summary", {"log_type": "tensorboard"}),
    ("algorithm.engine.install_sys_packages", True),
    ("algorithm.engine.image_repo_id", "r"),
    ("algorithm.inputs.0.remote.dataset", {"id": "d", "version_id": "v"}),
    ("algorithm.inputs.0.remote_constraint", [{"data_type": "obs"}]),
    ("algorithm.outputs.0.mode", "upload_at_end"),
    ("algorithm.outputs.0.period", 5),
    ("algorithm.parameters.0.constraint", {"sensitive": True}),
    ("algorithm.parameters.0.constraint", {"valid_range": ["1", "2"]}),
    ("tasks", [{"role": "actor"}]),
    ("spec.resource.pool_id", "pool-1"),
    ("spec.resource.pool_group_id", "g"),
    ("spec.resource.main_container_customized_flavor", {"cpu_core_num": 4}),
    ("spec.volumes", [{"nfs": {"nfs_server_path": "x", "local_path": "/y"}}]),
    ("spec.log_export_path.host_path", "/var/log"),
    ("spec.log_export_config.version", "v1"),
    ("spec.log_export_config.rotation_enabled", True),
    ("spec.retention", {"policy": "enabled"}),
    ("spec.schedule_policy.preemptible", True),
    ("spec.schedule_policy.required_affinity", {"affinity_type": "cabinet"}),
    ("spec.schedule_policy.preferred_affinity", {"node_affinity": [{"weight": 1}]}),
    ("spec.notification", {"topic_urn": "urn", "events": ["JobFailed"]}),
    ("spec.custom_metrics", [{"http_get": {"path": "/m", "port": 1}}]),
    ("spec.output_model", {"obs": {"obs_path": "x"}}),
    ("spec.asset_model", {"name": "m"}),
    ("spec.asset_id", "a"),
    ("spec.reserved_time", {"time_unit": "HOURS", "duration": 1}),
    ("endpoints.jupyter_lab", {"url": "http://h"}),
    ("endpoints.tensorboard", {"url": "http://h"}),
    ("endpoints.mindstudio_insight", {"url": "http://h"}),
    ("train_type", "SFT"),
    ("ftjob_config", {"model_type": "m"}),
    ("tags", [{"key": "k", "value": "v"}]),
]


@pytest.mark.parametrize(
    ("path", "value"), REFUSED_BY_NAME, ids=map(str, range(len(REFUSED_BY_NAME)))
)
def test_what_cannot_be_given_is_refused_by_name(path: str, value: Any) -> None:
    problem = refused(put(path, value))
    assert problem.key == "field-unsupported"
    named = str(problem.params["field"]).replace("[0]", ".0")
    assert named.startswith(path)


@pytest.mark.parametrize("key", sorted(FOREIGN_ANNOTATIONS))
def test_annotations_with_a_meaning_are_refused_when_they_ask_for_something(key: str) -> None:
    problem = refused(put("metadata.annotations", {key: "true"}))
    assert problem.key == "field-unsupported"
    assert problem.params["field"] == f"metadata.annotations.{key}"
    for value in ("false", "0", ""):
        assert job_spec(put("metadata.annotations", {key: value})).annotations == {key: value}


def test_a_template_of_several_roles_is_refused() -> None:
    assert refused(put("metadata.annotations", {"job_template": "Template RL"})).params["field"]


@pytest.mark.parametrize(
    "path",
    ["x", "metadata.nmae", "algorithm.comand", "algorithm.inputs.0.url", "spec.resources",
     "spec.resource.flavour", "algorithm.parameters.0.label", "danlu.grace", "endpoints.http"],
)  # fmt: skip
def test_an_unknown_field_is_named_by_its_path(path: str) -> None:
    problem = refused(put(path, 1))
    assert problem.key == "field-unknown"
    assert str(problem.params["field"]).replace("[0]", ".0") == path


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({}, "metadata"),
        ({"metadata": {"name": "n"}}, "algorithm"),
        ({"metadata": {}, "algorithm": {}}, "metadata.name"),
        (put("algorithm.inputs.0", {"name": "i"}), "algorithm.inputs[0].remote.obs.obs_url"),
        (put("algorithm.inputs.0", {"name": "i", "remote": {"obs": {}}}), "obs_url"),
        (put("algorithm.outputs.0", {"remote": {}}), "algorithm.outputs[0].name"),
        (put("algorithm.parameters.0", {"name": "p"}), "algorithm.parameters[0].value"),
        (put("spec.auto_stop", {"time_unit": "HOURS"}), "spec.auto_stop.duration"),
    ],
)
def test_what_is_missing_is_named(sent: dict[str, Any], field: str) -> None:
    problem = refused(sent)
    assert problem.key == "field-missing"
    assert str(problem.params["field"]).endswith(field)


@pytest.mark.parametrize(
    ("path", "value", "key"),
    [
        ("metadata.name", 5, "field-type"),
        ("spec.resource.node_count", "1", "field-type"),
        ("spec.resource.node_count", 0, "field-value"),
        ("spec.resource.node_count", 1 << 62, "field-value"),
        ("spec.auto_stop", {"time_unit": "MINUTES", "duration": 1}, "field-value"),
        ("spec.auto_stop", {"duration": 0}, "field-value"),
        ("spec.schedule_policy.priority", 4, "field-value"),
        ("danlu.grace_s", 3601, "field-value"),
        ("danlu.time_limit_s", 0, "field-value"),
        ("algorithm.inputs.0.access_method", "file", "field-value"),
        ("algorithm.outputs.0.prefetch_to_local", "yes", "field-type"),
        ("algorithm.inputs.0.remote.obs.obs_url", "http://x/y", "obs-url"),
        ("algorithm.outputs.0.remote.obs.obs_url", "obs://b/../x", "field-characters"),
        ("spec.log_export_path.obs_url", "b/x", "obs-url"),
        ("algorithm.parameters", {}, "field-type"),
        ("algorithm", [], "field-type"),
        ("metadata.annotations", [], "field-type"),
    ],
)
def test_a_value_that_cannot_be_is_refused(path: str, value: Any, key: str) -> None:
    assert refused(put(path, value)).key == key


def test_a_time_limit_is_in_hours_or_in_our_seconds() -> None:
    assert job_spec(put("danlu.time_limit_s", 90)).time_limit_s == 90
    both = put("danlu.time_limit_s", 3600)
    both["spec"] = {"auto_stop": {"duration": 1}}
    assert job_spec(both).time_limit_s == 3600
    both["spec"] = {"auto_stop": {"duration": 2}}
    assert refused(both).params["field"] == "danlu.time_limit_s"


# ---------------------------------------------------------------- the way back

NAMES = st.text("abcXYZ019_-", min_size=1, max_size=10)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
KEYS = st.text("abc/", max_size=8).map(lambda key: key.replace("//", "/").strip("/"))
URLS = st.builds(ObjectUrl, st.sampled_from(["b", "bucket-2"]), KEYS) | st.builds(
    LocalUrl, st.just("/data/x")
)
ACCESS = st.sampled_from(list(Access))

OUTPUTS = st.builds(Output, NAMES, URLS, ACCESS, st.just(""), st.booleans())
SPECS = st.builds(
    JobSpec,
    name=NAMES,
    flavor=NAMES,
    shape=st.just(Shape(0, 0)),
    node_count=st.integers(1, 1024),
    description=TEXTS,
    annotations=st.dictionaries(st.just("note"), TEXTS, max_size=1),
    engine=st.builds(EngineChoice, engine_id=NAMES | st.just("")),
    code=st.just(ObjectUrl("b", "app/")),
    boot_file=st.sampled_from(["t.py", "a/b c.py", "中.py"]),
    working_dir=st.sampled_from(["", "/home/ma-user/x"]),
    local_code_dir=st.sampled_from(["", "/cache/y"]),
    parameters=st.lists(st.builds(Parameter, NAMES, TEXTS), max_size=3).map(tuple),
    inputs=st.lists(st.builds(Input, NAMES, URLS, ACCESS), max_size=2).map(tuple),
    outputs=st.lists(OUTPUTS, max_size=2).map(tuple),
    environments=st.dictionaries(NAMES, TEXTS, max_size=2),
    priority=st.integers(1, 3),
    time_limit_s=st.none() | st.integers(1, 100_000),
    grace_s=st.integers(0, 3600),
    log_url=st.none() | URLS,
)


def view(spec: JobSpec, state: State = State.QUEUED, **attempt: Any) -> JobView:
    job = Job("j", "w", spec, 5, "alice")
    return JobView(job, Attempt(AttemptKey("j", 1, "t"), state, 5, **attempt))


@given(SPECS)
def test_a_reply_sent_back_asks_for_the_same_job(spec: JobSpec) -> None:
    reply = json.loads(json.dumps(replies.job(view(spec), 10)))
    assert job_spec(reply) == spec


def test_a_description_is_changed_and_nothing_else() -> None:
    assert description({"description": "新"}) == "新"
    assert description({"description": "", "spec": {}, "metadata": None}) == ""
    for sent, key in (
        ({}, "field-missing"),
        ({"description": "x" * 257}, "field-too-long"),
        ({"description": "\0"}, "field-characters"),
        ({"description": "x", "metadata": {"annotation": {"a": "b"}}}, "field-unsupported"),
        ({"description": "x", "name": "y"}, "field-unknown"),
    ):
        with pytest.raises(Invalid) as caught:
            description(sent)
        assert caught.value.key == key


def test_a_search_in_our_words() -> None:
    found = search(
        {
            "offset": 2,
            "limit": 10,
            "sort_by": "create_time",
            "order": "asc",
            "group_by": "",
            "workspace_id": "0",
            "filters": [
                {"key": "phase", "operator": "in", "value": ["Running", "Creating"]},
                {"key": "create_time", "operator": "between", "value": ["1", "2"]},
                {"key": "job_name", "operator": "like", "value": ["x"]},
            ],
        }
    )
    assert (found.page, found.limit, found.sort, found.descending) == (2, 10, "created_at", False)
    assert found.conditions == (
        Condition("state", "in", ("running", "collecting")),
        Condition("created_at", "between", (1, 2)),
        Condition("name", "like", ("x",)),
    )
    nothing = search({"filters": [{"key": "phase", "operator": "in", "value": ["Creating"]}]})
    assert nothing.conditions[0].values == ("none",)
    assert search({}) == search({"offset": None, "filters": []})


def test_ssh_is_asked_for_by_keys_or_for_all_of_them() -> None:
    for sent, wanted in (
        (put("endpoints.ssh.key_pair_names", ["a", "b"]), (True, ("a", "b"))),
        (put("danlu.ssh", True), (True, ())),
        (put("endpoints.ssh.key_pair_names", []), (False, ())),
    ):
        spec = job_spec(sent)
        assert (spec.ssh, spec.key_pairs) == wanted
        view = JobView(
            Job("j", "w", spec, 0, "u"), Attempt(AttemptKey("j", 1, "t"), State.RUNNING, 0)
        )
        url = ["ssh://j@h:1"] if spec.ssh else []
        shown = replies.job(view, 0, ssh=url)
        again = job_spec(shown)
        assert (again.ssh, again.key_pairs) == wanted
        urls = shown.get("endpoints", {}).get("ssh", {}).get("task_urls", [])
        assert urls == [{"task": "worker-0", "url": one} for one in url]
