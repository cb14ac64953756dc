"""What a line of the log says about trying again."""

from __future__ import annotations

from danlu.engines.memory_script import Script
from danlu.flow.explain import why
from danlu.model.attempt import State
from danlu.model.log_rules import LogRule, RuleAction
from danlu.model.reason import ReasonCode
from danlu.model.resources import GIB, Offer
from danlu.model.retry import Cause, Retry
from tests.flow.house import House
from tests.flow.test_retry import attempts, until_final

ALWAYS = Retry(3, tuple(Cause))
RULES = (LogRule("bad data", RuleAction.NO_RETRY), LogRule("ECC", RuleAction.AVOID_NODE))


def fails(rule: RuleAction, line: str) -> Script:
    """A program that fails and whose log holds a line that a rule is about."""
    note = {"match": line[:3], "rule": rule.value, "line": line}
    return Script(duration_s=1, exit_code=1, notes=[(1.0, "log-matched", note)])


def test_a_line_can_end_all_trying(house: House) -> None:
    house.scripts["job"] = fails(RuleAction.NO_RETRY, "bad data in row 7")
    job = house.submit(retry=ALWAYS, log_rules=RULES)
    assert until_final(house, job) is State.FAILED
    (only,) = attempts(house, job)
    assert only.reason is not None
    assert only.reason.code is ReasonCode.EXIT
    said = only.reason.sentence("en")
    assert said.startswith("task worker-0 exited with code 1; worker-0 printed 'bad data in row 7'")
    assert "bad data in row 7" in only.reason.sentence("zh")


def test_a_line_can_send_the_next_attempt_elsewhere(house: House) -> None:
    house.nodes = [Offer("a", 2, 4 * GIB), Offer("b", 1, 4 * GIB)]
    house.restart()
    house.by_attempt["job"] = (fails(RuleAction.AVOID_NODE, "ECC error"), Script(duration_s=1))
    job = house.submit(retry=ALWAYS, log_rules=RULES)
    assert until_final(house, job) is State.SUCCEEDED
    nodes = [one.placement[0].node for one in attempts(house, job)]
    assert nodes == ["a", "b"]


def test_it_waits_for_the_other_node_also_after_a_restart(house: House) -> None:
    house.nodes = [Offer("a", 1, 4 * GIB), Offer("b", 1, 4 * GIB)]
    house.restart()
    house.by_attempt["job"] = (fails(RuleAction.AVOID_NODE, "ECC error"), Script(duration_s=1))
    house.scripts["other"] = Script(duration_s=60)
    job = house.submit(retry=ALWAYS, log_rules=RULES, priority=3)
    house.turn()
    house.submit("other", flavor="danlu.cpu.1u")
    house.turn()
    entry = house.board.get(job)
    assert entry is not None
    assert entry.attempt.placement[0].node == "a"
    house.turn(1)
    house.turn()
    house.restart()
    house.turn()
    house.turn(10)
    found = house.view(job).attempt
    assert found.key.number == 2
    assert found.state is State.QUEUED, "another job holds the other node, and its own is free"
    said = why(house.platform, house.board, job)
    assert said is not None
    assert said.key == "waiting-resource"
    assert until_final(house, job) is State.SUCCEEDED
    assert attempts(house, job)[-1].placement[0].node == "b"


def test_without_another_node_there_is_no_further_attempt(house: House) -> None:
    """It would wait for ever, and nobody would know what for."""
    house.scripts["job"] = fails(RuleAction.AVOID_NODE, "ECC error")
    job = house.submit(retry=ALWAYS, log_rules=RULES)
    assert until_final(house, job) is State.FAILED
    assert len(attempts(house, job)) == 1
    assert house.history(job)[-1] == "no-other-node"


def test_not_trying_again_goes_before_trying_elsewhere(house: House) -> None:
    house.nodes = [Offer("a", 2, 4 * GIB), Offer("b", 2, 4 * GIB)]
    house.restart()
    house.by_task["gang", 1, 0] = fails(RuleAction.AVOID_NODE, "ECC error")
    house.by_task["gang", 1, 1] = fails(RuleAction.NO_RETRY, "bad data")
    job = house.submit("gang", node_count=2, retry=ALWAYS, log_rules=RULES)
    assert until_final(house, job) is State.FAILED
    assert len(attempts(house, job)) == 1
