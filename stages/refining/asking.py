"""What was asked: the request in a person's message, without acknowledgements, pasted logs and
injected elements.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from stages.model import Turn
from stages.refining import failures, pasted
from stages.refining.cues import Cued
from stages.refining.filler import strip_lead
from stages.refining.phrases import Phrases
from stages.refining.prose import Sentence, blocks, clip, joined, plain, sentences, windows

ASK_LENGTH = 150
MAX_SENTENCES = 40

_REQUEST = Cued(
    r"\b(?:please|can you|could you|let's|lets|we need|i need|i want|we want|i'd like|help me"
    r"|make|fix|add|update|implement|create|write|change|remove|delete|explain|review|check|find|read|show"
    r"|give|tell|run|test|set up|build|deploy|move|rename|refactor|investigate|look|use|plan|figure|debug"
    r"|commit|push|merge|keep|start|begin|put|don't|do not|why|how|what)\b"
    r"|请|帮|把|改|加|修|删|写|看|查|为什么|怎么|如何|实现|添加|更新|解释|分析|重构|运行|测试|能不能|可以"
    r"|需要|想要|不要|用",
    "add begin build change check commit create debug delete deploy do don explain figure find fix give "
    "help how implement investigate keep let lets like look make merge move need plan please push put "
    "read refactor remove rename review run show start tell test up update use want what why write you 不 "
    "么 何 修 写 删 加 可 实 帮 把 改 新 构 析 查 测 用 看 行 要 请 释",
)
_ASKS = Cued(
    r"吗|^(?:is|are|does|do|did|can|could|should|will|was|were|has|have)\b",
    "are can could did do does has have is should was were will 吗",
)
_ACK = re.compile(
    r"(?:(?:ok(?:ay)?|great|good|nice|perfect|cool|yes|yep|yeah|no|nope|thanks?|thank you|awesome|excellent"
    r"|hmm+|alright|right|sure|done|hi|hello|hey)(?: (?:job|work|thanks|good|then|now))?"
    r"|(?:that|this|it|those|these)(?:'s| is| are)? (?:all )?(?:works?|good|great|better|fine|perfect|right"
    r"|correct|nice)(?: (?:now|well|great|better|good))?|works(?: great| now| well)?"
    r"|mostly working(?: now)?"
    r"|好的?|行|可以|嗯+|不错|很好|谢谢|辛苦了|没问题|收到|你好)[\s,.!;:，。！、；：]*",
    re.IGNORECASE,
)
_INTERRUPTED = re.compile(r"\[?Request interrupted by user", re.IGNORECASE)
_BASH_IN = re.compile(r"<bash-input>(.{0,400}?)</bash-input>", re.DOTALL)
_BASH_OUT = re.compile(
    r"<bash-stdout>(.{0,2000}?)</bash-stdout>(?:<bash-stderr>(.{0,800}?)</bash-stderr>)?", re.DOTALL
)
_COMMAND_NAME = re.compile(r"<command-name>(.{1,80}?)</command-name>")
_NOTICE = re.compile(
    r"(?:title|description|summary)=\"([^\"]{3,160})\"|<(?:title|summary|description)>([^<]{3,160})<"
    r"|^(?:Title|Status|Summary): ?([^\n]{3,160})$",
    re.MULTILINE,
)
_FENCED = re.compile(r"^```[^\n]*\n(.{0,4000}?)^```", re.MULTILINE | re.DOTALL)
_FAILING = re.compile(
    r"\d+ (?:errors?|problems?|failed)\b|^fatal: |^panic: |npm (?:ERR!|error)|\[ERROR\]|✖|⨯"
    r"|^\W{0,4}(?:Uncaught |Unhandled )?Error: |^Failed to \w+",
    re.MULTILINE,
)
_PASTED_PAIR = re.compile(r"[\"'][^\"'\n]{1,80}[\"']\s*:\s")
_CLAUSE = re.compile(r"(?:because|but|so|since|that|which|因为|所以|但)\b", re.IGNORECASE)
_CONTINUED = "This session is being continued from a previous conversation"
_MENTION = re.compile(r"(?<![\w@])@(?=[\w./-]+[/.])")


@dataclass(frozen=True, slots=True)
class Ask:
    """``text`` is what was asked, short; ``sentences`` what the person said, with spans in the "user" source.

    ``pasted`` is the decisive line of pasted output, ``command`` the command it came from. ``kind`` is
    "said", "interrupted", "shell", "engine" or "empty".
    """

    text: str
    sentences: tuple[Sentence, ...] = ()
    pasted: str = ""
    command: str = ""
    kind: str = "said"


def ask(turn: Turn, asked: str, words: Phrases) -> Ask:
    """What opened this turn, in at most ``ASK_LENGTH`` characters."""
    opening = turn.user_text if turn.user_text is not None else turn.opening_text
    special = _special(turn, opening, words)
    if special is not None:
        return special
    said, logs = _said(asked)
    line, command = _pasted(logs, asked)
    text = _short(said)
    if not text and (line or command):
        source = command or ""
        text = (
            words.output_of.format(what=source, line=line)
            if source and line
            else words.pasted.format(line=line or source)
        )
    return Ask(clip(text, ASK_LENGTH), tuple(said), line, command, "said" if text else "empty")


def asks(text: str) -> bool:
    """Whether a request is a question."""
    return "?" in text or "？" in text or _ASKS.search(text) is not None


def _requests(text: str) -> bool:
    return text.rstrip().endswith(("?", "？")) or _REQUEST.search(text) is not None


def _special(turn: Turn, opening: str, words: Phrases) -> Ask | None:
    stripped = opening[:4_000].strip()
    if stripped.startswith(_CONTINUED):
        return Ask(words.continued, kind="engine")
    if _INTERRUPTED.match(stripped):
        return Ask(words.interrupted, kind="interrupted")
    if match := _BASH_IN.search(stripped[:600]):
        return Ask(words.ran.format(what=clip(match[1].strip(), 100)), kind="shell", command=match[1].strip())
    if stripped.startswith("<bash-stdout>"):
        match = _BASH_OUT.match(stripped)
        output = plain(" ".join(group for group in match.groups() if group)) if match else ""
        return Ask(words.output_of.format(what="shell", line=clip(output, 100) or "—"), kind="shell")
    if stripped.startswith("/") and " " not in stripped and "\n" not in stripped and len(stripped) < 40:
        return Ask(stripped, kind="said")
    if match := _COMMAND_NAME.search(stripped[:400]):
        return Ask(match[1], kind="said")
    if turn.user_text is None:
        return _engine(turn, stripped, words)
    return None


def _engine(turn: Turn, opening: str, words: Phrases) -> Ask | None:
    kind = turn.origin.split(":", 1)
    if kind[-1] == "goal_continuation":
        return Ask(words.goal, kind="engine")
    if kind[0] in ("task", "background_task"):
        match = _NOTICE.search(opening[:3_000])
        title = next((group for group in match.groups() if group), "") if match else ""
        return Ask(f"{words.notification}: {plain(title)}" if title else words.notification, kind="engine")
    return None  # sub-agents and cron: the prompt was written for this turn


def _said(asked: str) -> tuple[list[Sentence], list[str]]:
    """The sentences that a person said, and the lines that look pasted."""
    said: list[Sentence] = []
    logs: list[str] = []
    for offset, window in windows(asked):
        if "```" in window:
            logs += _FENCED.findall(window)
        kept, pasted_lines = pasted.without_logs(window)
        logs += pasted_lines
        for block in blocks(kept, offset):
            if block.kind not in ("code", "table") and len(said) < MAX_SENTENCES:
                said += sentences(block, casual=True)
    return said, logs


def _pasted(logs: list[str], asked: str) -> tuple[str, str]:
    if not logs:
        return "", ""
    text = "\n".join(logs[-120:])
    command = pasted.typed_command(asked)
    named = failures.codes(text) or failures.exceptions(text)
    line = failures.decisive(text, strict=True) if named or failures.exit_code(text) or _failing(text) else ""
    return line, clip(command, 60)


def _failing(text: str) -> bool:
    return _FAILING.search(text) is not None


def _without_mentions(text: str) -> str:
    return _MENTION.sub("", text) if "@" in text else text


def _short(said: list[Sentence]) -> str:
    """The request, with what leads to it when that fits."""
    texts = [_without_mentions(strip_lead(sentence.text)) for sentence in said]
    texts = [text for text in texts if text and not _ACK.fullmatch(text) and not _PASTED_PAIR.match(text)]
    texts = list(dict.fromkeys(texts))
    if not texts:
        return joined([sentence.text for sentence in said[:3]])
    whole = joined(texts[:6])
    if len(texts) <= 6 and len(whole) <= ASK_LENGTH:
        return whole
    requests = [index for index, text in enumerate(texts[:12]) if _requests(text) and not _CLAUSE.match(text)]
    first = requests[0] if requests else 0
    chosen = texts[first]
    for text in texts[first + 1 : first + 4]:
        if len(chosen) + len(text) + 1 > ASK_LENGTH:
            break
        chosen = joined([chosen, text])
    if first > 0 and len(chosen) + len(texts[first - 1]) + 1 <= ASK_LENGTH:
        chosen = joined([texts[first - 1], chosen])
    return chosen
