"""A drill of real jobs: one that loads its checkpoint, and some that do not."""

from __future__ import annotations

import json
import textwrap

import pytest

from tests.faces.cli.house import House

TRAIN = """
import os, sys, time
out = dict(word.lstrip("-").split("=", 1) for word in sys.argv[1:] if "=" in word)["model"]
last = os.path.join(out, "last")
first = int(open(last).read()) + 1 if RESUMES and os.path.exists(last) else 0
for step in range(first, 40):
    time.sleep(0.1)
    print(f"step={step} loss={1 / (1 + step):.4f}", flush=True)
    with open(last + ".part", "w") as file:
        file.write(str(step))
    os.replace(last + ".part", last)
"""


def job_file(house: House, text: str, *, output: bool = True) -> str:
    """A job file beside its script."""
    script = house.script(text)
    folder = script.rpartition("/")[0]
    outputs = 'outputs: [{name: model, remote: {obs: {obs_url: "obs://danlu/model/"}}}]'
    path = f"{folder}/job.yaml"
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123 - a path as text
        file.write(
            textwrap.dedent(
                f"""
                kind: job
                metadata: {{name: trains}}
                algorithm:
                  code_dir: .
                  boot_file: train.py
                  {outputs if output else ""}
                spec: {{resource: {{flavor_id: danlu.cpu.1u, node_count: 1}}}}
                """
            )
        )
    return path


@pytest.mark.long
def test_a_script_that_loads_its_checkpoint_resumes(house: House) -> None:
    path = job_file(house, f"RESUMES = True\n{TRAIN}")
    done = house.run("drill", "-f", path, "--kills", "2", "--seed", "7", "--json")
    report = json.loads(done.stdout)

    assert done.returncode == 0, (report, done.stderr)
    assert report["resumed"] is True
    assert (report["seed"], report["state"], len(report["kills"])) == (7, "succeeded", 2)
    assert [one[1] > 0 for one in report["first_steps"]] == [False, True, True]
    assert report["steps"] == 40
    assert report["steps_repeated"] < 40
    assert report["loss"]["largest_gap"] == 0
    assert len(report["checkpoints"]) == 2

    job = report["reference"]
    assert house.state(job) == "succeeded"
    again = house.run("drill", job, "--kills", "1", "--seed", "8")
    assert again.returncode == 0, again.stderr
    assert b"it resumes: after each of 1 kill(s)" in again.stdout
    assert b"first a run in peace" not in again.stderr, "the job itself has shown that"


@pytest.mark.long
def test_a_script_that_begins_anew_does_not(house: House) -> None:
    path = job_file(house, f"RESUMES = False\n{TRAIN}")
    done = house.run("drill", "-f", path, "--kills", "1", "--seed", "3")

    assert done.returncode == 1
    assert b"it does not resume" in done.stdout
    assert b"write checkpoints to an output" in done.stdout


def test_a_job_that_cannot_be_drilled_says_why(house: House) -> None:
    without = house.run("drill", "-f", job_file(house, "print(1)", output=False))
    assert without.returncode == 2
    assert b"the job has no output" in without.stderr
    fails = house.run("drill", "-f", job_file(house, "import sys\nsys.exit(3)"))
    assert fails.returncode == 1
    assert b"fails in peace too" in fails.stderr
    assert house.run("drill").returncode == 2
