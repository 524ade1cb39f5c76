"""pipeline/workspaces.py: same directory, ids, nearest, exclude rules."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeline import workspaces


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("/home/dev/p", "/home/dev/p/", True),
        ("/home/dev/p", "/home/dev/P", False),
        ("C:\\Work\\App", "c:/work/app/", True),
        ("\\\\Host\\Share\\p", "//host/share/P", True),
        ("C:\\", "C:", False),
        ("C:\\", "c:/", True),
        ("/", "/", True),
        ("/home/dev/项目", "/home/dev/项目/", True),
        ("/home/dev/p", "/home/dev/p2", False),
    ],
)
def test_same_dir(a: str, b: str, same: bool) -> None:
    assert workspaces.same_dir(a, b) is same


@pytest.mark.parametrize(
    ("cwd", "expected"),
    [
        ("/home/dev/proj/c_fork", "workspace-2b1cd3945d7b"),
        ("/home/dev/proj/c_fork/", "workspace-2b1cd3945d7b"),
        ("/home/dev/proj/s_dirnames/项目", "workspace-9411376ab391"),
        ("/home/dev", "workspace-default"),
        ("/home/dev/", "workspace-default"),
        ("C:\\work\\app", workspaces.workspace_id("C:/work/app", "")),
    ],
)
def test_workspace_id_is_the_other_servers(cwd: str, expected: str) -> None:
    assert workspaces.workspace_id(cwd, "/home/dev") == expected


@pytest.mark.parametrize(
    ("cwd", "key"),
    [
        ("/home/dev/proj/s_dirnames/我的 Project (v2)", "wd_project-v2_c2e33653315a"),
        ("/home/dev/proj/s_dirnames/项目", "wd_workspace_9411376ab391"),
        (
            "/home/dev/proj/s_dirnames/-A_Very.Long--Name-that-exceeds-forty-chars-for-sure-",
            "wd_a_very.long--name-that-exceeds-forty-cha_a13f087323e9",
        ),
        ("/", "wd_workspace_e3b0c44298fc"),
        ("/home/dev/proj/c_fork/", "wd_c_fork_2b1cd3945d7b"),
    ],
)
def test_work_dir_key_is_upstreams(cwd: str, key: str) -> None:
    assert workspaces.work_dir_key(cwd) == key


def test_spellings_follow_symlinks_and_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    monkeypatch.chdir(tmp_path)
    assert workspaces.spellings("link/../link/") == (str(tmp_path / "link"), str(real))
    assert workspaces.spellings(".") == (str(tmp_path),)


@pytest.mark.skipif(os.name == "nt", reason="such a path is real there")
def test_windows_path_is_taken_as_recorded() -> None:
    assert workspaces.spellings("C:\\work\\app") == ("C:\\work\\app",)


def test_nearest_prefers_a_relative_then_the_name_then_likeness() -> None:
    known = ["/home/dev/app", "/old/place/web", "/home/dev/wob", "/zzz"]
    assert workspaces.nearest("/home/dev/app/src", known)[0] == "/home/dev/app"
    assert workspaces.nearest("/home/dev/web", known)[:2] == ("/old/place/web", "/home/dev/wob")
    assert workspaces.nearest("/x", []) == ()


@pytest.mark.parametrize(
    ("rule", "hit"),
    [
        ("/home/dev/private", True),
        ("/home/dev/private/", True),
        ("/home/dev", True),
        ("/home/dev/priv", False),
        ("/home/dev/private/**", True),
        ("/home/*/private", True),
        ("private", True),
        ("priv*", True),
        ("workspace-0123456789ab", True),
        ("workspace-*", True),
        ("/home/dev/private/deep", False),
    ],
)
def test_excluded_dir(rule: str, hit: bool) -> None:
    assert workspaces.excluded_dir([rule], "/home/dev/private", "workspace-0123456789ab") is hit


def test_excluded_dir_below_and_on_windows() -> None:
    assert workspaces.excluded_dir(["/home/dev/private"], "/home/dev/private/deep", "w")
    assert workspaces.excluded_dir(["c:/Secret"], "C:\\secret\\app", "w")
    assert not workspaces.excluded_dir(["/x"], None, "workspace-unknown-b")
    assert workspaces.excluded_dir(["workspace-unknown-b"], None, "workspace-unknown-b")


def test_exclude_rule_through_a_symlink_names_what_it_leads_to(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    rules = workspaces.resolved([str(tmp_path / "link"), "x*"])
    assert rules == (str(tmp_path / "link"), "x*", str(real))
    assert workspaces.excluded_dir(rules, str(real), "w")


@pytest.mark.parametrize(
    ("rule", "path", "hit"),
    [
        (".env", "conf/.env", True),
        (".env*", "/home/dev/p/.env.local", True),
        ("secrets", "secrets/key.pem", True),
        ("secrets/*.pem", "secrets/key.pem", True),
        ("secrets/*.pem", "/home/dev/p/secrets/key.pem", True),
        ("/home/dev/p/secrets", "secrets/key.pem", True),
        ("/home/dev/p/secrets", "src/secrets.py", False),
        ("*.pem", "src/app.py", False),
        ("/etc/**", "/etc/passwd", True),
    ],
)
def test_excluded_path(rule: str, path: str, hit: bool) -> None:
    assert workspaces.excluded_path([rule], path, "/home/dev/p") is hit
