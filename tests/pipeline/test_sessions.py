"""pipeline/sessions.py: every layout found, every oddity counted, workspaces by directory."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from pipeline import config, session_state, sessions
from pipeline.errors import ExitCode, UnknownWorkspace
from pipeline.session_state import milliseconds, parse_session_index, parse_state
from pipeline.sessions import Cache, Inventory, Session
from pipeline.settings import Settings
from pipeline.workspaces import work_dir_key, workspace_id

SAMPLES = Path(__file__).parents[1] / "samples"
WIRE = '{"type":"metadata","protocol_version":"1.5","created_at":1796033702300}\n'
CWD = "/home/dev/app"


def settings_of(home: Path | None = None, **env: str) -> Settings:
    base = {"HOME": "/home/nobody"} | ({"KIMI_CODE_HOME": str(home)} if home else {})
    return config.load(base | env)


def look(home: Path | None = None, cache: Cache | None = None, **env: str) -> Inventory:
    return sessions.discover(settings_of(home, **env), cache)


def add(
    home: Path,
    name: str = "session_1",
    *,
    cwd: str | None = CWD,
    bucket: str | None = None,
    agents: tuple[str, ...] = ("main",),
    **state: object,
) -> Path:
    """A session as CLI 2.1.0 leaves it. ``cwd=None``: no state.json."""
    folder = home / "sessions" / (bucket or work_dir_key(cwd or CWD)) / name
    for agent in agents:
        (folder / "agents" / agent).mkdir(parents=True, exist_ok=True)
        (folder / "agents" / agent / "wire.jsonl").write_text(WIRE, encoding="utf-8")
    if cwd is not None:
        put(folder / "state.json", {"id": name, "version": 2, "cwd": cwd, "createdAt": 1796033702300} | state)
    return folder


def put(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def by_id(inventory: Inventory) -> Mapping[str, Session]:
    return {session.session_id: session for session in inventory.sessions}


# --- the recorded samples ----------------------------------------------------------------------------------


def test_sample_directories_with_odd_names() -> None:
    inventory = look(SAMPLES / "s_dirnames/home")
    assert [(space.id, space.cwd, len(space.sessions)) for space in inventory.workspaces] == [
        (
            "workspace-a13f087323e9",
            "/home/dev/proj/s_dirnames/-A_Very.Long--Name-that-exceeds-forty-chars-for-sure-",
            1,
        ),
        ("workspace-c2e33653315a", "/home/dev/proj/s_dirnames/我的 Project (v2)", 2),
        ("workspace-9411376ab391", "/home/dev/proj/s_dirnames/项目", 1),
    ]
    assert not inventory.skipped
    assert [session.created_at for session in inventory.sessions] == sorted(
        session.created_at or 0 for session in inventory.sessions
    )


def test_sample_fork_of_a_fork() -> None:
    first, second, third = look(SAMPLES / "c_fork/home").sessions
    assert first.forked_from is None
    assert (second.forked_from, third.forked_from) == (first.session_id, second.session_id)
    assert second.title == f"Fork: {first.session_id}"
    assert first.title is None
    assert first.updated_at == 1796033783450


def test_sample_sub_agents_and_swarm() -> None:
    [session] = look(SAMPLES / "d_subagent/home").sessions
    assert [
        (agent.agent_id, agent.kind, agent.parent_agent_id, agent.swarm_item, agent.profile)
        for agent in session.agents
    ] == [
        ("main", "main", None, None, None),
        ("agent-0", "sub", "main", None, "explore"),
        ("agent-1", "sub", "main", "src/calc.py", "explore"),
        ("agent-2", "sub", "main", "src/hello.py", "explore"),
        ("agent-3", "sub", "main", None, "explore"),
    ]
    assert all(agent.wire.is_file() for agent in session.agents)


def test_sample_side_channel_and_titles() -> None:
    found = by_id(look(SAMPLES / "k_tui/home"))
    asked = found["session_b5c89221-70b1-4b86-aed7-6f2065deab4d"]
    assert asked.title == "My TUI sample"
    assert [(agent.kind, agent.forked_from) for agent in asked.agents] == [("main", None), ("btw", "main")]
    assert found["session_33aa49f5-2a5c-43ff-a151-b4e7c3268631"].title == "first question"


@pytest.mark.parametrize("variable", ["KIMI_SHARE_DIR", "MEMORY_SESSIONS_ROOT", "KIMI_CODE_HOME"])
def test_sample_legacy_home_however_it_is_named(variable: str) -> None:
    home = SAMPLES / "l_legacy_kimi_cli/home"
    named = home / "sessions" if variable == "MEMORY_SESSIONS_ROOT" else home
    inventory = sessions.discover(config.load({"HOME": "/home/nobody", variable: str(named)}))
    found = by_id(inventory)
    assert {(s.kind, s.cwd) for s in found.values()} == {("kimi-cli", "/home/dev/proj/l_legacy_kimi_cli")}
    session = found["e43d5996-40bf-437d-acdc-047ba7af47ff"]
    assert session.title == "Change y to 2 in y.py 然后 cat nope.txt"
    assert [(a.agent_id, a.kind, a.parent_agent_id, a.profile) for a in session.agents] == [
        ("main", "main", None, None),
        ("ac129bd54", "sub", "main", "explore"),
    ]
    assert session.updated_at == session.agents[0].wire.stat().st_mtime_ns // 1_000_000
    assert not inventory.skipped


@pytest.mark.parametrize("home", sorted(SAMPLES.glob("*/home")), ids=lambda home: home.parent.name)
def test_every_sample_as_expected(home: Path) -> None:
    expected = json.loads((home.parent / "EXPECTED.json").read_text(encoding="utf-8"))
    found = by_id(look(home, KIMI_SHARE_DIR=str(home)))
    assert set(found) == {session["session_id"] for session in expected["sessions"]}
    for session in expected["sessions"]:
        one = found[session["session_id"]]
        assert one.cwd == session["cwd"]
        assert one.title == session["title"]
        assert {agent.agent_id for agent in one.agents} == {agent["agent"] for agent in session["agents"]}


def test_copied_home_works_from_its_new_place(tmp_path: Path) -> None:
    """The samples' own paths are elsewhere; so are those in a state file's homedir."""
    copy = tmp_path / "copied"
    shutil.copytree(SAMPLES / "c_fork/home", copy)
    for session in look(copy).sessions:
        assert session.agents[0].wire.is_relative_to(copy)


# --- layouts -----------------------------------------------------------------------------------------------


def test_sessions_root_wins_over_the_home(tmp_path: Path) -> None:
    add(tmp_path / "a", "session_a")
    add(tmp_path / "b", "session_b")
    inventory = look(tmp_path / "a", MEMORY_SESSIONS_ROOT=str(tmp_path / "b/sessions"))
    assert list(by_id(inventory)) == ["session_b"]
    assert inventory.folders == (tmp_path / "b/sessions",)


def test_same_folder_under_two_names_is_read_once(tmp_path: Path) -> None:
    add(tmp_path / "a")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    inventory = look(tmp_path / "a", KIMI_SHARE_DIR=str(tmp_path / "b"))
    assert len(inventory.sessions) == 1
    assert not inventory.skipped


def test_no_home_at_all_is_empty(tmp_path: Path) -> None:
    inventory = look(tmp_path / "absent")
    assert not inventory.sessions
    assert not inventory.workspaces
    assert not inventory.skipped


def test_state_of_version_1(tmp_path: Path) -> None:
    folder = add(tmp_path, cwd=None)
    put(
        folder / "state.json",
        {
            "createdAt": "2026-11-30T10:28:17.175Z",
            "updatedAt": "2026-11-30T10:28:18.585Z",
            "customTitle": "old",
            "workDir": CWD,
            "agents": {"main": {"type": "main", "parentAgentId": None}},
            "custom": {},
        },
    )
    [session] = look(tmp_path).sessions
    assert (session.cwd, session.title) == (CWD, "old")
    assert (session.created_at, session.updated_at) == (1796034497175, 1796034498585)


def test_ancient_layouts(tmp_path: Path) -> None:
    folder = tmp_path / "sessions" / work_dir_key(CWD) / "session_old"
    put(folder / "session-meta/state.json", {"cwd": CWD, "title": "t"})
    (folder / "wire.jsonl").write_text(WIRE, encoding="utf-8")
    [session] = look(tmp_path).sessions
    assert (session.cwd, session.title) == (CWD, "t")
    assert [(a.agent_id, a.wire) for a in session.agents] == [("main", folder / "wire.jsonl")]


def test_relations(tmp_path: Path) -> None:
    add(
        tmp_path,
        archived=True,
        agents=("main", "agent-10", "agent-2", "agent-3"),
        custom={"parent_session_id": "session_0", "child_session_kind": "task"},
    )
    state = tmp_path / "sessions" / work_dir_key(CWD) / "session_1/state.json"
    put(
        state,
        json.loads(state.read_text(encoding="utf-8"))
        | {
            "agents": {
                "main": {"type": "main"},
                "agent-2": {"type": "sub", "forkedFrom": "main", "labels": {"parentAgentId": "main"}},
                "agent-3": {"type": "sub", "labels": {"parentAgentId": "agent-2"}, "swarmItem": "x"},
                "agent-77": {"type": "sub"},
                "agent-10": 3,
            }
        },
    )
    [session] = look(tmp_path).sessions
    assert session.archived
    assert (session.parent_session_id, session.child_kind) == ("session_0", "task")
    assert [(a.agent_id, a.kind, a.parent_agent_id, a.swarm_item) for a in session.agents] == [
        ("main", "main", None, None),
        ("agent-2", "fork", "main", None),
        ("agent-3", "sub", "agent-2", "x"),
        ("agent-10", "sub", None, None),
    ]


def legacy(home: Path, name: str, cwd: str, *, listed: bool = True, kaos: str = "local") -> Path:
    digest = hashlib.md5(cwd.encode(), usedforsecurity=False).hexdigest()
    folder = home / "sessions" / (digest if kaos == "local" else f"{kaos}_{digest}") / name
    folder.mkdir(parents=True)
    (folder / "wire.jsonl").write_text('{"type": "metadata", "protocol_version": "1.10"}\n', encoding="utf-8")
    put(home / "kimi.json", {"work_dirs": [{"path": cwd, "kaos": kaos}] if listed else []})
    return folder


def test_legacy_unknown_bucket_and_other_kaos(tmp_path: Path) -> None:
    legacy(tmp_path / "a", "one", CWD, listed=False)
    [session] = look(KIMI_SHARE_DIR=str(tmp_path / "a")).sessions
    assert (session.cwd, session.workspace_id) == (None, f"workspace-unknown-{session.bucket}")
    legacy(tmp_path / "b", "two", CWD, kaos="docker")
    [session] = look(KIMI_SHARE_DIR=str(tmp_path / "b")).sessions
    assert session.cwd == CWD


def test_legacy_without_a_wire_is_counted(tmp_path: Path) -> None:
    folder = legacy(tmp_path, "one", CWD)
    (folder / "wire.jsonl").rename(folder / "context.jsonl")
    (folder.parent / "two.jsonl").touch()
    inventory = look(KIMI_SHARE_DIR=str(tmp_path))
    assert inventory.sessions == ()
    assert inventory.skipped == {"context-only": 2}


def test_legacy_metadata_and_archive_flag(tmp_path: Path) -> None:
    folder = legacy(tmp_path, "one", CWD)
    put(folder / "metadata.json", {"title": "t", "archived": True, "wire_mtime": 1796034716.5})
    [session] = look(KIMI_SHARE_DIR=str(tmp_path)).sessions
    assert (session.title, session.archived, session.updated_at) == ("t", True, 1796034716500)


def test_import_gives_way_to_its_original_while_that_exists(tmp_path: Path) -> None:
    custom = {"imported_from_kimi_cli": True, "kimi_cli_session_id": "one"}
    add(tmp_path / "code", "ses_1", custom=custom)
    original = legacy(tmp_path / "cli", "one", CWD)
    cli = str(tmp_path / "cli")
    found = by_id(look(tmp_path / "code", KIMI_SHARE_DIR=cli))
    assert found["ses_1"].imported_from == "one"
    assert (found["ses_1"].superseded_by_original, found["one"].superseded_by_original) == (True, False)
    assert found["ses_1"].workspace_id == found["one"].workspace_id
    shutil.rmtree(original)
    assert not by_id(look(tmp_path / "code", KIMI_SHARE_DIR=cli))["ses_1"].superseded_by_original


# --- directories nobody recorded in a state file -----------------------------------------------------------


def test_cwd_from_the_session_index(tmp_path: Path) -> None:
    add(tmp_path, cwd=None)
    index = [{"sessionId": "session_1", "workDir": "/wrong"}, {"sessionId": "session_1", "workDir": CWD}]
    text = "\n".join(map(json.dumps, index)) + '\n{"torn'
    (tmp_path / "session_index.jsonl").write_text(text, encoding="utf-8")
    assert look(tmp_path).sessions[0].cwd == CWD


def test_cwd_from_workspaces_json_then_from_a_neighbour_then_from_the_wire(tmp_path: Path) -> None:
    folder = add(tmp_path, cwd=None)
    wire = folder / "agents/main/wire.jsonl"
    assert look(tmp_path).workspaces[0].id == f"workspace-unknown-{work_dir_key(CWD)}"
    bind = {"type": "profile.bind", "environmentDisclosure": {"cwd": "/home/dev/from-wire"}}
    wire.write_text(WIRE + json.dumps(bind) + "\n", encoding="utf-8")
    assert look(tmp_path).sessions[0].cwd == "/home/dev/from-wire"
    add(tmp_path, "session_2")
    assert by_id(look(tmp_path))["session_1"].cwd == CWD
    put(tmp_path / "workspaces.json", {"workspaces": {work_dir_key(CWD): {"root": "/home/dev/from-index"}}})
    assert by_id(look(tmp_path))["session_1"].cwd == "/home/dev/from-index"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"cwd": 3, "agents": [], "custom": 1}'])
def test_broken_state_is_tolerated(tmp_path: Path, content: bytes) -> None:
    folder = add(tmp_path)
    (folder / "state.json").write_bytes(content)
    inventory = look(tmp_path)
    assert [agent.agent_id for agent in inventory.sessions[0].agents] == ["main"]
    assert inventory.skipped == ({} if content.startswith(b'{"') else {"broken-state": 1})


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_state_that_is_a_fifo_does_not_block(tmp_path: Path) -> None:
    folder = add(tmp_path)
    (folder / "state.json").unlink()
    os.mkfifo(folder / "state.json")
    assert look(tmp_path).skipped == {"broken-state": 1}


# --- what is skipped ---------------------------------------------------------------------------------------


def test_dot_entries_backups_and_temporary_files_are_no_sessions(tmp_path: Path) -> None:
    folder = add(tmp_path)
    for name in ("wire.jsonl.bak", "wire.jsonl.tmp.12.0a1b2c3d"):
        (folder / "agents/main" / name).write_text(WIRE, encoding="utf-8")
    for path in ("sessions/.index-dirty/session_1.17", "sessions/.index-cache/scan.json"):
        put(tmp_path / path, {})
    add(tmp_path, ".hidden")
    add(tmp_path, bucket=".trash")
    put(tmp_path / "imported/imp_012345678901/agents/main/wire.jsonl", {})
    (tmp_path / "sessions/stray.txt").touch()
    inventory = look(tmp_path)
    assert [(s.session_id, len(s.agents)) for s in inventory.sessions] == [("session_1", 1)]
    assert not inventory.skipped


def test_wire_that_is_no_file_is_counted_and_the_rest_found(tmp_path: Path) -> None:
    folder = add(tmp_path, "session_1", agents=("main", "agent-0", "agent-1"))
    for agent in ("agent-0", "agent-1"):
        (folder / "agents" / agent / "wire.jsonl").unlink()
    (folder / "agents/agent-0/wire.jsonl").mkdir()
    expected = 1
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "agents/agent-1/wire.jsonl")
        expected = 2
    (add(tmp_path, "session_2") / "agents/main/wire.jsonl").unlink()
    add(tmp_path, "session_3")
    inventory = look(tmp_path)
    assert {s.session_id: len(s.agents) for s in inventory.sessions} == {"session_1": 1, "session_3": 1}
    assert inventory.skipped == {"not-regular": expected, "no-wire": 1}


def test_unreadable_directory_never_stops_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = add(tmp_path, "session_1", cwd="/home/dev/bad").parent
    add(tmp_path, "session_2")
    scandir = os.scandir

    def refuse(path: str) -> object:
        if str(path) == str(bad):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    inventory = look(tmp_path)
    assert list(by_id(inventory)) == ["session_2"]
    assert inventory.skipped == {"unreadable": 1}


def test_copy_of_a_bucket_does_not_double_its_sessions(tmp_path: Path) -> None:
    folder = add(tmp_path)
    shutil.copytree(folder.parent, folder.parent.with_name("backup"))
    inventory = look(tmp_path)
    assert [session.dir for session in inventory.sessions] == [folder]
    assert inventory.skipped == {"duplicate-session": 1}


# --- workspaces --------------------------------------------------------------------------------------------


def test_spellings_of_one_directory_are_one_workspace(tmp_path: Path) -> None:
    add(tmp_path, "session_1", cwd="C:\\Work\\App", createdAt=1796033702301)
    add(tmp_path, "session_2", cwd="c:/work/app/", createdAt=1796033702300)
    [space] = look(tmp_path).workspaces
    assert len(space.sessions) == 2
    assert space.cwd == "c:/work/app/"
    assert {session.workspace_id for session in space.sessions} == {space.id}
    other = space.id
    (tmp_path / "store" / workspace_id("C:/Work/App", "")).mkdir(parents=True)
    [space] = look(tmp_path, MEMORY_STORE_ROOT=str(tmp_path / "store")).workspaces
    assert space.id != other
    assert space.cwd == "C:\\Work\\App"


def test_home_directory_is_the_default_workspace(tmp_path: Path) -> None:
    add(tmp_path, cwd="/home/nobody")
    [space] = look(tmp_path).workspaces
    assert (space.id, space.cwd) == ("workspace-default", "/home/nobody")


def test_find_workspace_by_any_spelling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    add(tmp_path, "session_1", cwd=str(real))
    add(tmp_path, "session_2", cwd="D:\\app")
    inventory = look(tmp_path)
    for name in (str(real), f"{real}/", str(tmp_path / "link"), f"{tmp_path}/x/../real"):
        assert sessions.find_workspace(inventory, name).cwd == str(real)
    monkeypatch.chdir(real)
    assert sessions.find_workspace(inventory, ".").cwd == str(real)
    assert sessions.find_workspace(inventory, "d:/APP").cwd == "D:\\app"
    space = inventory.workspaces[0]
    assert sessions.find_workspace(inventory, space.id) is space


def test_find_workspace_recorded_through_a_symlink(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    add(tmp_path, cwd=str(tmp_path / "link"))
    assert sessions.find_workspace(look(tmp_path), str(tmp_path / "real")).cwd == str(tmp_path / "link")


def test_unknown_workspace_names_the_nearest(tmp_path: Path) -> None:
    for index, cwd in enumerate(("/home/dev/app", "/home/dev/web", "/srv/x/tool", "/opt/y")):
        add(tmp_path, f"session_{index}", cwd=cwd)
    with pytest.raises(UnknownWorkspace) as caught:
        sessions.find_workspace(look(tmp_path), "/home/dev/app/src")
    assert caught.value.exit_code is ExitCode.USAGE
    assert caught.value.nearest[0] == "/home/dev/app"
    assert len(caught.value.nearest) == 3
    assert "/home/dev/app/src: no session was recorded" in str(caught.value)
    assert "Nearest known: /home/dev/app" in str(caught.value)


def test_unknown_workspace_without_any_session_says_where_was_looked(tmp_path: Path) -> None:
    with pytest.raises(UnknownWorkspace, match=str(tmp_path / "sessions")):
        sessions.find_workspace(look(tmp_path), "/x")


# --- exclude rules -----------------------------------------------------------------------------------------


def test_excluded_workspace(tmp_path: Path) -> None:
    add(tmp_path, "session_1", cwd="/home/dev/private/deep")
    add(tmp_path, "session_2")
    inventory = look(tmp_path, KIMI_MEMORY_EXCLUDE_WORKSPACES="/home/dev/private")
    assert list(by_id(inventory)) == ["session_2"]
    assert inventory.skipped == {"excluded-workspace": 1}
    with pytest.raises(UnknownWorkspace, match="excluded by the setting"):
        sessions.find_workspace(inventory, "/home/dev/private/deep")


def test_excluded_session_takes_its_forks_and_imports_along(tmp_path: Path) -> None:
    add(tmp_path / "code", "session_1")
    add(tmp_path / "code", "session_2", forkedFrom="session_1")
    add(tmp_path / "code", "session_3", forkedFrom="session_2")
    add(tmp_path / "code", "session_4")
    add(tmp_path / "code", "ses_5", custom={"imported_from_kimi_cli": True, "kimi_cli_session_id": "old"})
    legacy(tmp_path / "cli", "old", CWD)
    cli = str(tmp_path / "cli")
    rules = os.pathsep.join(["*_1", "old"])
    inventory = look(tmp_path / "code", KIMI_MEMORY_EXCLUDE_SESSIONS=rules, KIMI_SHARE_DIR=cli)
    assert list(by_id(inventory)) == ["session_4"]
    assert inventory.skipped == {"excluded-session": 5}


# --- cache -------------------------------------------------------------------------------------------------


def age(home: Path) -> None:
    """Everything was last changed long ago."""
    for path in [home, *home.rglob("*")]:
        os.utime(path, (1_700_000_000, 1_700_000_000))


def test_unchanged_sessions_are_not_parsed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(tmp_path, "session_1")
    add(tmp_path, "session_2", agents=("main", "agent-0"))
    age(tmp_path)
    cache: Cache = {}
    first = look(tmp_path, cache)

    def refuse(*_: object) -> None:
        raise AssertionError("parsed again")

    monkeypatch.setattr(session_state, "parse_state", refuse)
    assert look(tmp_path, cache) == first


def test_changes_are_seen_through_the_cache(tmp_path: Path) -> None:
    folder = add(tmp_path, "session_1", title="old")
    gone = add(tmp_path, "session_2")
    age(tmp_path)
    cache: Cache = {}
    look(tmp_path, cache)
    add(tmp_path, "session_1", title="new", agents=("main", "agent-0"))
    add(tmp_path, "session_3")
    shutil.rmtree(gone)
    found = by_id(look(tmp_path, cache))
    assert list(found) == ["session_1", "session_3"]
    assert found["session_1"].title == "new"
    assert len(found["session_1"].agents) == 2
    assert str(gone) not in cache
    shutil.rmtree(folder / "agents/agent-0")
    assert len(by_id(look(tmp_path, cache))["session_1"].agents) == 1


def test_wire_that_comes_after_its_directory_is_seen_through_the_cache(tmp_path: Path) -> None:
    folder = add(tmp_path)
    (folder / "agents/agent-0").mkdir()
    age(tmp_path)
    cache: Cache = {}
    assert len(look(tmp_path, cache).sessions[0].agents) == 1
    (folder / "agents/agent-0/wire.jsonl").write_text(WIRE, encoding="utf-8")
    assert len(look(tmp_path, cache).sessions[0].agents) == 2


def test_skips_are_counted_again_from_the_cache(tmp_path: Path) -> None:
    folder = add(tmp_path)
    (folder / "state.json").write_text("{", encoding="utf-8")
    age(tmp_path)
    cache: Cache = {}
    assert look(tmp_path, cache).skipped == look(tmp_path, cache).skipped == {"broken-state": 1}


# --- values ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1796034497175, 1796034497175),
        (1796034497.175, 1796034497175),
        ("2026-11-30T10:28:17.175Z", 1796034497175),
        ("2026-11-30T10:28:17", 1796034497000),
        ("soon", None),
        (True, None),
        (0, None),
        (-5, None),
        (1e300, None),
        (253_402_300_800_000, None),
        ("9999-12-31T23:59:59-12:00", None),
        ("0001-01-01T00:00:00+14:00", None),
        (float("nan"), None),
        (None, None),
    ],
)
def test_milliseconds(value: object, expected: int | None) -> None:
    assert milliseconds(value) == expected


def test_title_cut_inside_a_surrogate_pair_is_read() -> None:
    state = parse_state(rb'{"cwd":"/home/dev/app","title":"fine \ud83d"}')
    assert state is not None
    assert state.title == "fine ?"
    assert state.cwd == CWD


def test_tombstone_in_the_session_index() -> None:
    lines = [{"sessionId": "a", "workDir": "/x"}, {"sessionId": "a", "deleted": True}]
    assert parse_session_index("\n".join(map(json.dumps, lines)).encode()) == {}
