"""pipeline/config.py: the order of the three places, and errors that name them."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from pipeline import config
from pipeline.errors import ConfigError, ExitCode
from pipeline.settings import SETTINGS, Settings

HOME = {"HOME": "/home/dev"}


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_defaults() -> None:
    settings = config.load(HOME)
    assert settings.store_root == Path("/home/dev/.kimi-code-memory")
    assert settings.sessions_root is None
    assert settings.kimi_home == Path("/home/dev/.kimi-code")
    assert settings.legacy_home == Path("/home/dev/.kimi")
    assert settings.search_budget_ms == 200
    assert 1 <= settings.jobs <= 4
    assert settings.background is True
    assert settings.cpu_share == 20
    assert settings.tools == "default"
    assert settings.retention_days == 0
    assert settings.exclude_workspaces == settings.exclude_paths == settings.exclude_sessions == ()
    assert set(settings.origins.values()) == {"default"}


def test_every_row_of_the_table_is_a_field_and_unique() -> None:
    fields = set(Settings.__dataclass_fields__) - {"home", "origins"}
    assert [setting.name for setting in SETTINGS if setting.name in fields] == [s.name for s in SETTINGS]
    assert len(fields) == len(SETTINGS) == len({setting.env for setting in SETTINGS})
    keys = [setting.key for setting in SETTINGS if setting.key]
    assert len(keys) == len(set(keys))
    assert all(setting.meaning for setting in SETTINGS)


def test_environment_then_store_then_root(tmp_path: Path) -> None:
    store = write(tmp_path / "w/config.toml", "[run]\njobs = 2\n[search]\nbudget_ms = 50\n")
    root = write(
        tmp_path / "config.toml", "[run]\njobs = 3\n[search]\nbudget_ms = 60\n[retention]\ndays = 9\n"
    )
    settings = config.load(HOME | {"KIMI_MEMORY_JOBS": "5"}, store, root)
    assert (settings.jobs, settings.search_budget_ms, settings.retention_days) == (5, 50, 9)
    origins = {line.setting.name: line.origin for line in config.effective(settings)}
    assert origins["jobs"] == "KIMI_MEMORY_JOBS"
    assert origins["search_budget_ms"] == f"{store}: search.budget_ms"
    assert origins["retention_days"] == f"{root}: retention.days"
    assert origins["tools"] == "default"


def test_exclusions_add_up_over_all_places(tmp_path: Path) -> None:
    store = write(tmp_path / "w/config.toml", '[exclude]\nsessions = ["session_a*"]\n')
    root = write(tmp_path / "config.toml", '[exclude]\nsessions = ["session_b*", "session_a*"]\n')
    env = HOME | {"KIMI_MEMORY_EXCLUDE_SESSIONS": os.pathsep.join(["session_c", " "])}
    settings = config.load(env, store, root)
    assert settings.exclude_sessions == ("session_c", "session_a*", "session_b*")
    assert settings.origins["exclude_sessions"].count("; ") == 2


def test_settings_for_reads_the_files_in_their_places(tmp_path: Path) -> None:
    env = HOME | {"MEMORY_STORE_ROOT": str(tmp_path)}
    write(tmp_path / "config.toml", '[server]\ntools = "all"\n')
    write(tmp_path / "workspace-1/config.toml", "[background]\nenabled = false\n")
    assert config.settings_for(env).tools == "all"
    assert config.settings_for(env).background is True
    assert config.settings_for(env, "workspace-1").background is False
    assert config.settings_for(env).store("workspace-1") == tmp_path / "workspace-1"


def test_paths_expand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    root = write(tmp_path / "etc/config.toml", '[homes]\nkimi_code = "beside"\nkimi_cli = "~/old"\n')
    env = HOME | {"MEMORY_STORE_ROOT": "a/../b", "MEMORY_SESSIONS_ROOT": "~"}
    settings = config.load(env, None, root)
    assert settings.store_root == tmp_path / "b"
    assert settings.sessions_root == Path("/home/dev")
    assert settings.kimi_home == tmp_path / "etc/beside"
    assert settings.legacy_home == Path("/home/dev/old")


def test_tilde_in_exclude_rules() -> None:
    settings = config.load(HOME | {"KIMI_MEMORY_EXCLUDE_WORKSPACES": "~/private"})
    assert settings.exclude_workspaces == ("/home/dev/private",)


def test_empty_variable_counts_as_unset() -> None:
    assert config.load(HOME | {"MEMORY_STORE_ROOT": " "}) == config.load(HOME)


@pytest.mark.parametrize(
    ("text", "on"), [("0", False), ("off", False), ("No", False), ("1", True), ("TRUE", True), ("on", True)]
)
def test_background_switch(text: str, on: bool) -> None:
    assert config.load(HOME | {"KIMI_MEMORY_BACKGROUND": text}).background is on


@pytest.mark.parametrize(
    ("env", "problem"),
    [
        ({"KIMI_MEMORY_JOBS": "many"}, "KIMI_MEMORY_JOBS: 'many' is not a number"),
        ({"KIMI_MEMORY_JOBS": "0"}, "KIMI_MEMORY_JOBS: 0 is not between 1 and 256"),
        ({"KIMI_MEMORY_JOBS": "1.5"}, "KIMI_MEMORY_JOBS: 1.5 is not a whole number"),
        ({"KIMI_MEMORY_CPU_SHARE": "nan"}, "KIMI_MEMORY_CPU_SHARE: nan is not between 1 and 100"),
        ({"KIMI_MEMORY_BACKGROUND": "maybe"}, "KIMI_MEMORY_BACKGROUND: 'maybe' is neither on nor off"),
        ({"KIMI_MEMORY_TOOLS": "some"}, "KIMI_MEMORY_TOOLS: 'some' is not one of default, all"),
    ],
)
def test_wrong_variable_is_named(env: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.load(HOME | env)
    assert caught.value.message == problem
    assert caught.value.exit_code is ExitCode.USAGE


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[run]\njobs = true\n", ": run.jobs: True is not a number"),
        ('[run]\njobs = "x"\n', ": run.jobs: 'x' is not a number"),
        ("[background]\nenabled = 3\n", ": background.enabled: 3 is neither on nor off"),
        ("[server]\ntools = 1\n", ": server.tools: 1 is not one of default, all"),
        ('[exclude]\npaths = "x"\n', ": exclude.paths: 'x' is not a list of texts"),
        ("[exclude]\npaths = [1]\n", ": exclude.paths: [1] is not a list of texts"),
        ("[homes]\nkimi_code = 1\n", ": homes.kimi_code: 1 is not a path"),
        (
            "[exclude]\nworkspace = []\n",
            ": exclude.workspace: unknown setting\nDid you mean exclude.workspaces?",
        ),
        ("[store]\nroot = 'x'\n", ": store.root: unknown setting"),
        ("[run\n", ": not valid TOML: "),
        ("[run]\njobs = \xff", ": not valid TOML: "),
    ],
)
def test_wrong_file_names_itself_and_the_key(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError) as caught:
        config.load(HOME, None, path)
    assert str(caught.value).startswith(f"{path}{problem}")


def test_homes_cannot_be_set_for_one_workspace(tmp_path: Path) -> None:
    path = write(tmp_path / "config.toml", '[homes]\nkimi_code = "/x"\n')
    with pytest.raises(ConfigError, match="cannot be set for one workspace"):
        config.load(HOME, path, None)


def test_file_that_is_a_directory_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        config.load(HOME, None, tmp_path)


def test_legacy_home_is_not_read_by_default_beside_a_named_sessions_folder() -> None:
    assert config.load(HOME).reads_legacy
    assert not config.load(HOME | {"MEMORY_SESSIONS_ROOT": "/s"}).reads_legacy
    assert config.load(HOME | {"MEMORY_SESSIONS_ROOT": "/s", "KIMI_SHARE_DIR": "/k"}).reads_legacy


def test_settings_travel_to_worker_processes() -> None:
    settings = config.load(HOME)
    copy = pickle.loads(pickle.dumps(settings))
    assert copy == settings
    assert copy.origins == settings.origins
    assert hash(copy) == hash(settings)


def test_windows_home() -> None:
    assert config.home_directory({"USERPROFILE": "/users/dev"}) == Path("/users/dev").absolute()
    assert config.home_directory({}) == Path.home()
