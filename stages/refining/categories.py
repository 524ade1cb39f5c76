"""The kinds of work a turn can be, a closed vocabulary (peer-formats: ``categories``)."""

from __future__ import annotations

import re
from functools import lru_cache

from stages.model import Entities, Fact
from stages.refining.cues import Cued

CATEGORIES = (
    "bugfix", "feature", "refactor", "decision", "question", "investigation", "config", "docs", "test",
    "review", "chore",
)  # fmt: skip
"""bugfix: something broken was repaired or tried to be · feature: something new was built · refactor: same
behaviour, other shape · decision: a choice was made · question: an answer, no change · investigation: looked
into without changing anything · config: settings, dependencies, deployment · docs: prose files · test: tests
written or run · review: existing work was examined and judged · chore: commits, clean-up, upkeep."""

MAX_CATEGORIES = 3

_FIX = Cued(
    r"\b(?:fix(?:es|ed|ing)?|bug|broken|crash\w*|fail(?:s|ed|ing|ure)?|errors?|doesn't work|not working"
    r"|wrong|issue|regression|repair)\b|修复|修|报错|失败|崩溃|出错|不对|问题|无法|不能|故障",
    "broken bug crash crash* doesn error errors fail failed failing fails failure fix fixed fixes fixing "
    "issue regression repair working wrong 不 修 无 溃 败 错 障 题",
)
_FEATURE = Cued(
    r"\b(?:add|implement|create|build|support|introduce|feature|allow|make)\b|新增|添加|增加|实现|支持"
    r"|加(?:一|个|上)|做一?个|开发",
    "add allow build create feature implement introduce make support 做 加 实 开 持 新",
)
_REFACTOR = Cued(
    r"\b(?:refactor\w*|rename\w*|restructure|clean ?up|simplif\w+|extract|reorgani[sz]e|dedup\w*"
    r"|consolidate|split)\b|重构|重命名|拆分|整理|抽取|简化",
    "clean cleanup consolidate dedup dedup* extract refactor refactor* rename rename* reorganise "
    "reorganize restructure simplif* split 抽 拆 整 简 重",
)
_QUESTION = Cued(
    r"^(?:what|why|how|where|which|who|when|is|are|does|do|can|could|should|explain|tell me"
    r"|describe)\b|为什么|怎么|什么|如何|吗[？?]?$|解释|哪",
    "are can could describe do does explain how is should tell what when where which who why 么 何 吗 哪 释",
)
_INVESTIGATE = Cued(
    r"\b(?:investigate|look into|debug|analy[sz]e|research|explore|find out|figure out|understand|examine"
    r"|trace|search)\b|排查|调查|分析|研究|看看|查一?下|定位",
    "analyse analyze debug examine explore figure find investigate look research search trace understand "
    "位 析 查 看 研",
)
_REVIEW = Cued(
    r"\b(?:review|audit|critique|evaluate|assess|double[- ]check)\b|评审|审查|检查一遍|评估|复查|review",
    "assess audit critique double evaluate review* 估 复 审 遍",
)
_TEST = Cued(
    r"\b(?:tests?|testing|coverage|e2e|unit test)\b|测试|用例|覆盖率",
    "coverage e test testing tests 例 测 率",
)
_CONFIG = Cued(
    r"\b(?:config\w*|env(?:ironment)?|deploy\w*|docker\w*|ci|pipeline|lint(?:er|ing)?|install|dependenc\w+"
    r"|upgrade|setup|set up|vercel|fly\.io|port)\b|配置|部署|环境变量|依赖|安装|升级|端口",
    "ci config config* dependenc* deploy deploy* docker docker* env environment fly install lint linter "
    "linting pipeline port setup up upgrade vercel 依 升 变 安 端 署 配",
)
_DOCS = Cued(
    r"\b(?:docs?|documentation|readme|changelog|comments? in|plan|write[- ]?up)\b|文档|说明|计划书|注释",
    "changelog comment comments doc docs documentation plan readme up writeup 划 明 档 注",
)
_CHORE = Cued(
    r"\b(?:commit|push|merge|rebase|tag|release|format|bump|clean)\b|提交|推送|合并|发布|格式化|清理",
    "bump clean commit format merge push rebase release tag 化 发 并 推 提 清",
)
_DOC_FILE = re.compile(r"\.(?:md|rst|txt|adoc|mdx)$", re.IGNORECASE)
_TEST_FILE = re.compile(
    r"(?:^|/)(?:tests?|__tests__|spec)/|(?:^|/)test_|_test\.|\.(?:test|spec)\.", re.IGNORECASE
)
_CONFIG_FILE = re.compile(
    r"(?:package\.json|pyproject\.toml|Dockerfile|docker-compose[^/]*|Makefile|\.env[^/]*"
    r"|[^/]*\.(?:ya?ml|toml|ini|cfg|conf)|tsconfig[^/]*|[^/]*config\.\w+|requirements[^/]*|go\.mod"
    r"|Cargo\.toml|\.[\w-]+rc(?:\.\w+)?|vercel\.json|\.gitignore|\.dockerignore)$",
    re.IGNORECASE,
)
_TEST_COMMAND = re.compile(r"\b(?:pytest|test|vitest|jest|mocha|unittest|tox|rspec|ctest)\b")


def categories(asked: str, facts: tuple[Fact, ...], entities: Entities, decision: bool) -> tuple[str, ...]:
    """At most ``MAX_CATEGORIES`` of ``CATEGORIES``, the most telling first."""
    written = entities.files_written
    found: list[str] = ["decision"] if decision else []
    if written:
        kinds = [_kinds_of(path) for path in written]
        code = kinds.count(frozenset())
        found += _of_changes(asked, facts, code)
        if any("test" in kind for kind in kinds):
            found.append("test")
        if any("config" in kind for kind in kinds) and (not code or _CONFIG.search(asked)):
            found.append("config")
        if any("docs" in kind for kind in kinds) and (not code or _DOCS.search(asked)):
            found.append("docs")
    found += _of_words(asked, bool(written), entities)
    return tuple(list(dict.fromkeys(found))[:MAX_CATEGORIES])


@lru_cache(maxsize=1_024)
def _kinds_of(path: str) -> frozenset[str]:
    """What a file is besides code: "test", "config", "docs"."""
    kinds = set()
    if _DOC_FILE.search(path):
        kinds.add("docs")
    if _CONFIG_FILE.match(path.rpartition("/")[2]):
        kinds.add("config")
    if _TEST_FILE.search(path):
        kinds.add("test")
    return frozenset(kinds)


def _of_changes(asked: str, facts: tuple[Fact, ...], code: int) -> list[str]:
    if _REFACTOR.search(asked) and not _FIX.search(asked):
        return ["refactor"]
    if _FIX.search(asked) or any(fact.type == "error" and fact.source == "user" for fact in facts):
        return ["bugfix"]
    return ["feature"] if code and (code > 1 or _FEATURE.search(asked)) else []


def _asks(text: str) -> bool:
    return text.rstrip().endswith(("?", "？")) or _QUESTION.search(text) is not None


def _of_words(asked: str, wrote: bool, entities: Entities) -> list[str]:
    found = []
    if _REVIEW.search(asked):
        found.append("review")
    if _CHORE.search(asked) and any(
        command.startswith(("git ", "npm version", "gh ")) for command in entities.commands
    ):
        found.append("chore")
    if _TEST.search(asked) and (wrote or any(_TEST_COMMAND.search(command) for command in entities.commands)):
        found.append("test")
    if not wrote:
        if _FIX.search(asked) and not _asks(asked):
            found.append("bugfix")
        if _INVESTIGATE.search(asked):
            found.append("investigation")
        if _CONFIG.search(asked):
            found.append("config")
        if _asks(asked):
            found.append("question")
    return found
