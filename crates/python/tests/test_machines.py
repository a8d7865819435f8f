"""Agents in Python services, and a collector that answers: with a real `ucl serve`."""

from __future__ import annotations

import datetime as dt
import ipaddress
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import PATIENCE, ended, eventually, run, started
from serving import Server, serve, stop

import ucl_sketch as ucl

PAGES = [f"/page/{n * n % 97}" for n in range(5_000)]
TRUTH = Counter(PAGES)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A stream of the test's own."""
    return "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[:60]


@pytest.fixture
def make(server: Server, name: str, tmp_path: Path) -> Iterator[Callable[..., ucl.Agent]]:
    """Makes agents, and closes them in the end."""
    made = []

    def agent(**options: Any) -> ucl.Agent:
        given = {"to": server.url, "token": server.token, "stream": name, "state": tmp_path / "state", **options}
        made.append(ucl.Agent(**given))
        return made[-1]

    yield agent
    for agent_ in made:
        agent_.close(timeout=0)


def asked(server: Server, **options: Any) -> ucl.Collector:
    return ucl.Collector(server.url, server.token, **options)


def test_what_a_service_counts_can_be_asked(
    server: Server, make: Callable[..., ucl.Agent], name: str
) -> None:
    collector = asked(server)
    with make() as agent:
        for page in PAGES:
            agent.add(page)
        agent.update(np.array(["/home"] * 10 + ["/cart"]), weights=[2] * 11)
        assert agent.flush(PATIENCE)
        status = agent.status()
        assert (status.items, status.waiting, status.dropped, status.trouble) == (5_011, 0, 0, None)
        assert repr(agent).startswith(f"<ucl_sketch.Agent stream={name} to={server.url} items=5011 ")
    truth = TRUTH + Counter({"/home": 20, "/cart": 2})
    top = collector.top(1_000, stream=name)
    assert {row.key: row.count for row in top} == truth
    assert all(isinstance(row, ucl.Count) and row.lower <= row.count <= row.upper for row in top)
    assert top.about is not None and top.about["items"] == 5_011 and top.about["unseen_items"] == 0
    assert top.to_pandas()["count"].sum() == truth.total()
    assert collector.estimate("/home", stream=name).count == 20
    asked_for = collector.estimate(["/cart", "/nowhere"], stream=name)
    assert asked_for["key"] == ["/cart", "/nowhere"] and asked_for["count"] == [2, 0]
    assert len(collector.estimate([], stream=name)) == 0
    prefixes = collector.prefix(["/page/", "/cart"], stream=name)
    assert prefixes["count"] == [5_000, 2] and prefixes["keys"] == [len(TRUTH), 1]
    [stream] = [row for row in collector.streams() if row.stream == name]
    assert (stream.items, stream.keys, stream.health) == (5_011, len(truth), "ok")
    assert collector.streams(stream=name).to_arrow()["stream"].to_pylist() == [name]


def test_questions_about_time(server: Server, make: Callable[..., ucl.Agent], name: str) -> None:
    collector = asked(server)
    agent = make()
    start = dt.datetime.now(dt.timezone.utc)
    agent.update(["a"] * 30 + ["b"] * 10)
    assert agent.flush(PATIENCE)
    time.sleep(0.05)
    between = dt.datetime.now(dt.timezone.utc)
    # Epochs have their times in milliseconds, and this one may last less than one.
    time.sleep(0.05)
    agent.update(["b"] * 50)
    assert agent.flush(PATIENCE)
    end = dt.datetime.now(dt.timezone.utc) + dt.timedelta(seconds=1)
    series = collector.series("b", stream=name)
    assert series["count"] == [10, 50] and series["items"] == [40, 50]
    assert series[0].stream == name and start - dt.timedelta(seconds=1) <= series[0].start < series[0].end <= between
    assert series.to_pandas()["end"].dt.tz is not None
    late = collector.top(stream=name, since=between, until=end)
    assert [(row.key, row.count) for row in late] == [("b", 50)]
    for last in ("1h", dt.timedelta(hours=1)):
        assert collector.top(stream=[name], last=last)["count"] == [60, 30]
    assert collector.estimate("b", stream=name + "*", since=start.date()).count == 60
    milliseconds = int(between.timestamp() * 1_000)
    assert collector.estimate("b", stream=name, until=milliseconds, since=0).count == 10
    steps = collector.series("b", stream=name, step="1h", last="2h")
    assert sum(steps["count"]) == 60 and steps.column_names[:2] == ["start", "end"]
    changes = collector.changes(5, stream=name, since=between, until=end)
    assert {row.key: row.after - row.before for row in changes} == {row.key: row.change for row in changes}
    assert changes["key"][0] == "b"


def test_keys_travel_as_text(server: Server, make: Callable[..., ucl.Agent], name: str) -> None:
    address = ipaddress.ip_address("10.0.0.1")
    keys: list[Any] = [7, -1, "é", b"\xff\x00", "tab\there", "", address, ("a,b", 3, address), "hex:ff"]
    agent = make()
    for at, key in enumerate(keys):
        agent.add(key, weight=at + 1)
    agent.update(np.array([7], "uint8"))
    agent.update([("a,b", 3, address)], weights=[0])
    assert agent.flush(PATIENCE)
    collector = asked(server)
    for at, key in enumerate(keys):
        assert collector.estimate(key, stream=name).count == at + 1 + (key == 7), key
    shown = {row.key for row in collector.top(stream=name) if row.key is not None}
    assert {"7", "-1", "é", "10.0.0.1", '"a,b",3,10.0.0.1'} <= shown
    as_bytes = asked(server, keys="bytes").top(stream=name)
    assert {b"\xff\x00", b"tab\there", b"", b"7"} <= set(as_bytes["key"])
    with pytest.raises(ValueError, match="is no int64: ask with another type of keys"):
        asked(server, keys="int64").top(stream=name)


@pytest.mark.parametrize(
    ("keys", "column"),
    [
        ("int64", [3, -4, 3]),
        ("ipv4", [ipaddress.ip_address("10.0.0.1")] * 2),
        (("str", "uint16"), [("a,b", 1), ("a", 2), ('"', 3)]),
    ],
)
def test_keys_come_back_with_their_type(
    server: Server, make: Callable[..., ucl.Agent], name: str, keys: Any, column: list[Any]
) -> None:
    agent = make()
    agent.update(column)
    assert agent.flush(PATIENCE)
    top = asked(server, keys=keys).top(stream=name)
    assert {row.key: row.count for row in top} == Counter(column)


def test_several_agents_add_up(server: Server, make: Callable[..., ucl.Agent], name: str) -> None:
    agents = [make(stream=f"{name}.{n}") for n in range(3)]
    for agent in agents:
        agent.update(PAGES)
    assert all(agent.flush(PATIENCE) for agent in agents)
    top = asked(server).top(1_000, stream=f"{name}.*")
    assert {row.key: row.count for row in top} == Counter(PAGES * 3)


def test_threads_share_an_agent(server: Server, make: Callable[..., ucl.Agent], name: str) -> None:
    agent = make()

    def work() -> None:
        for page in PAGES[:1_000]:
            agent.add(page)
        agent.update(PAGES)
        agent.flush(PATIENCE)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads)
    assert agent.flush(PATIENCE)
    top = asked(server).top(1_000, stream=name)
    assert {row.key: row.count for row in top} == Counter((PAGES[:1_000] + PAGES) * 4)


def test_the_end_of_the_interpreter_delivers(server: Server, name: str, tmp_path: Path) -> None:
    program = f"""
import sys
import ucl_sketch as ucl
agent = ucl.Agent(to={server.url!r}, token={server.token!r}, stream={name!r}, state={str(tmp_path)!r})
agent.update(["a", "b", "a"])
sys.exit(3)
"""
    assert run(program) == 3
    assert {row.key: row.count for row in asked(server).top(stream=name)} == {"a": 2, "b": 1}


def test_the_end_of_the_interpreter_waits_once(server: Server, name: str, tmp_path: Path) -> None:
    # Of all but the first the collector cannot be reached, and those are closed before it.
    program = f"""
import ucl_sketch as ucl
for n in range(8):
    to = {server.url!r} if n == 0 else "http://127.0.0.1:1"
    ucl.Agent(to=to, token={server.token!r}, stream={name + "-"!r} + str(n), state={str(tmp_path)!r}).add("a")
"""
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    # Not five seconds for each of them.
    assert ended(child, within=30) == 0
    assert child.stderr is not None and b"cannot reach http://127.0.0.1:1" in child.stderr.read()
    child.stderr.close()
    assert asked(server).estimate("a", stream=name + "-*").count == 1
    with ucl.Agent(to="http://127.0.0.1:1", token="t", stream=name + "-7", state=tmp_path) as again:
        assert again.status().waiting == 1
        again.close(timeout=0)


def in_child(agent: ucl.Agent, results: Any) -> None:
    raised = []
    for call in (lambda: agent.add("x"), agent.flush, agent.close, agent.status):
        try:
            call()
        except ucl.UclError as error:
            raised.append(str(error))
    results.put((raised, repr(agent)))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="processes are not forked here")
def test_a_forked_process_needs_an_agent_of_its_own(server: Server, make: Callable[..., ucl.Agent], name: str) -> None:
    agent = make()
    agent.add("before")
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=in_child, args=(agent, results))
    child.start()
    raised, shown = results.get(timeout=PATIENCE)
    child.join(PATIENCE)
    assert child.exitcode == 0 and len(raised) == 4 and shown.endswith("of another process>")
    assert all("make one in each process, with a stream of its own" in text for text in raised)
    agent.add("after")
    assert agent.flush(PATIENCE)
    assert {row.key for row in asked(server).top(stream=name)} == {"before", "after"}


def test_an_outage_costs_nothing(program: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    server = serve(program, tmp_path / "data")
    given: Any = {"to": server.url, "token": server.token, "stream": "s", "state": tmp_path / "state"}
    stop(server)
    agent = ucl.Agent(**given)
    for page in PAGES:
        agent.add(page)
    with caplog.at_level(logging.WARNING, "ucl_sketch"):
        assert not agent.flush(timeout=0.5)
        assert "cannot reach" in eventually(lambda: agent.status().trouble)
        agent.status()
    assert f"s: warning: cannot reach {server.url}" in caplog.text
    assert agent.status().waiting == 1
    assert not agent.close(timeout=0.2)
    with pytest.raises(ValueError, match="the agent is closed"):
        agent.add("late")
    assert not agent.close()
    # Another process would go on like this: with what waits in the folder.
    again = ucl.Agent(**given)
    assert again.status().waiting == 1
    server = serve(program, tmp_path / "data", server.url.removeprefix("http://"), server.token)
    try:
        again.add("one more")
        assert again.flush(timeout=PATIENCE)
        answer = ucl.Collector(server.url, server.token).top(1_000)
        assert {row.key: row.count for row in answer} == TRUTH + Counter({"one more": 1})
        assert answer.about is not None and not answer.about["unseen_unknown"]
        again.close()
    finally:
        stop(server)


def test_a_killed_service_says_what_nobody_saw(server: Server, name: str, tmp_path: Path) -> None:
    program = f"""
import time
import ucl_sketch as ucl
agent = ucl.Agent(to={server.url!r}, token={server.token!r}, stream={name!r}, state={str(tmp_path)!r})
agent.add("a")
assert agent.flush({PATIENCE})
agent.add("lost")
print("ready", flush=True)
time.sleep(60)
"""
    child = started(program)
    child.kill()
    ended(child)
    with ucl.Agent(to=server.url, token=server.token, stream=name, state=tmp_path) as agent:
        agent.add("b")
        assert agent.flush(PATIENCE)
    top = asked(server).top(stream=name)
    assert {row.key: row.count for row in top} == {"a": 1, "b": 1}
    assert top.about is not None and top.about["unseen_unknown"]


def test_a_full_queue_leaves_keys_out_and_tells(
    server: Server, make: Callable[..., ucl.Agent], name: str, caplog: pytest.LogCaptureFixture
) -> None:
    agent = make(queue="1KB")
    with caplog.at_level(logging.WARNING, "ucl_sketch"):
        agent.update(PAGES)
        assert agent.flush(PATIENCE)
        status = agent.status()
    assert status.dropped > 0 and status.items + status.dropped == len(PAGES)
    assert "the queue is full" in caplog.text
    about = asked(server).top(stream=name).about
    assert about is not None and about["unseen_items"] == status.dropped


def test_a_batch_may_wait_for_room(server: Server, make: Callable[..., ucl.Agent], name: str) -> None:
    agent = make(queue="1MB")
    numbers = np.arange(200_000) % 1_000
    agent.update(numbers, wait=True)
    assert agent.flush(timeout=30)
    assert agent.status().dropped == 0
    top = asked(server, keys="int64").top(1_000, stream=name)
    assert set(top["count"]) == {200} and sorted(top["key"]) == list(range(1_000))


def test_wrong_keys_count_nothing(server: Server, make: Callable[..., ucl.Agent], name: str) -> None:
    agent = make()
    wrong: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
        ([1, "a"], {}, TypeError, "row 1 is str, but the rows before are int"),
        (np.array([1.5]), {}, TypeError, "columns of float64 are not counted"),
        (["a"], {"weights": [1, 2]}, ValueError, "2 weights for 1 keys"),
        (["a", None], {"null": "error"}, ValueError, "row 1 is null"),
        (["a"], {"null": "count"}, ValueError, "an agent has no key for nulls"),
        (["a", "x" * 65_536], {}, ValueError, "row 1: a key of 65536 bytes is longer than 65535"),
        ([("a", '"' * 40_000)], {}, ValueError, "row 0: a key of 80004 bytes is longer"),
    ]
    for column, options, error, words in wrong:
        with pytest.raises(error, match=words):
            agent.update(column, **options)
    for key, weight, error, words in [
        (None, 1, TypeError, "None is no key here"),
        (1.5, 1, TypeError, "row 0 is a float"),
        ("a", 2**63, ValueError, "a weight is from 0 to 2"),
        ("x" * 65_536, 1, ValueError, "longer than 65535"),
    ]:
        with pytest.raises(error, match=words):
            agent.add(key, weight)
    agent.update(["a", None, "a"])
    agent.add("a", weight=0)
    assert agent.flush(PATIENCE)
    assert agent.status().items == 2


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"to": "collector:7070"}, ValueError, "is not the address of a collector"),
        ({"token": "two words"}, ValueError, "the token has a space"),
        ({"stream": "a/b"}, ValueError, '"a/b" is not a name'),
        ({"tenant": ""}, ValueError, "is not a name"),
        ({"mode": "magic"}, ValueError, "there is no mode 'magic'"),
        ({"mode": "exact"}, ValueError, "an agent cannot count in mode exact"),
        ({"memory": 10}, ValueError, "too small"),
        ({"spool": "1KB"}, ValueError, "a spool of 1024 bytes is too small"),
        ({"cut_every": "5"}, ValueError, "cut_every is a number and a unit"),
        ({"interval": 0}, ValueError, "at least 1 item"),
        ({"ca": "/no/such/file"}, FileNotFoundError, "/no/such/file"),
        ({"state": "/dev/null/folder"}, OSError, "folder"),
    ],
)
def test_settings_that_cannot_be(
    make: Callable[..., ucl.Agent], options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        make(**options)


def test_a_service_may_change_its_folder(
    make: Callable[..., ucl.Agent], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    agent = make(state="here")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    agent.add("a")
    assert agent.flush(PATIENCE)
    assert agent.status().trouble is None and (tmp_path / "here").is_dir()


def test_a_flush_ends_while_others_begin(make: Callable[..., ucl.Agent]) -> None:
    agent, done = make(), threading.Event()

    def hasty() -> None:
        while not done.is_set():
            agent.add("x")
            agent.flush(timeout=0)

    threads = [threading.Thread(target=hasty) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        assert agent.flush(PATIENCE / 3)
        assert agent.flush(PATIENCE / 3)
    finally:
        done.set()
        for thread in threads:
            thread.join(PATIENCE)


def test_one_agent_a_stream(make: Callable[..., ucl.Agent]) -> None:
    first = make()
    with pytest.raises(OSError, match="is in use"):
        make()
    first.close()
    make()


def test_a_collector_that_does_not_answer(server: Server) -> None:
    with pytest.raises(PermissionError, match="status 401"):
        ucl.Collector(server.url, "wrong").top()
    collector = asked(server)
    assert repr(collector) == f"<ucl_sketch.Collector {server.url} tenant=default>"
    with pytest.raises(ValueError, match="last"):
        collector.top(last="yesterday")
    with pytest.raises(ValueError, match="not both"):
        collector.top(last="1h", since="2026-01-01")
    with pytest.raises(ValueError, match="row 1 is null"):
        collector.estimate(["a", None])
    with pytest.raises(TypeError, match="since is a datetime"):
        collector.top(since=1.5)  # type: ignore[arg-type]
    with pytest.raises(ConnectionError, match="cannot reach http://127.0.0.1:1"):
        ucl.Collector("http://127.0.0.1:1", server.token).top()


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_does_not_wait_for_an_answer() -> None:
    program = """
import socket, sys
import ucl_sketch as ucl
silent = socket.create_server(("127.0.0.1", 0))
collector = ucl.Collector(f"http://127.0.0.1:{silent.getsockname()[1]}", "t")
try:
    print("ready", flush=True)
    collector.top()
except KeyboardInterrupt:
    sys.exit(42)
"""
    child = started(program)
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    # A collector that does not answer is given up after a minute.
    assert ended(child, within=20) == 42
