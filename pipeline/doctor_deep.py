"""`pipeline doctor --deep`: secrets that slipped through, by our own rules and by those of detect-secrets.

Every stored text and every file of the store is looked at. Findings name turns, files and kinds, never a value. What
our own rules find now, and did not when it was stored, ``--fix`` redacts; what only the other tool sees is for a
person to judge: it takes many things for secrets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import orjson
from anyio import to_thread

from pipeline.doctor_report import Finding
from pipeline.errors import PipelineError
from pipeline.fold import redactor
from pipeline.forgetting_plan import texts_of
from pipeline.settings import Settings
from pipeline.store import codec, files
from pipeline.store.database import Database
from pipeline.store.erasing import occurrences_of, read_again, rewrite
from pipeline.store.layout import Layout, redaction_key
from pipeline.store.sources import sources
from stages.redact import Redactor

PIECE = 200
SHOWN = 5
MARK = "[secret:"
TEXT_FILES = (".json", ".md", ".toml", ".txt")
FILE_LIMIT = 16 * 1024 * 1024
PLUGINS = (
    "ArtifactoryDetector", "AWSKeyDetector", "AzureStorageKeyDetector", "BasicAuthDetector", "CloudantDetector",
    "DiscordBotTokenDetector", "GitHubTokenDetector", "GitLabTokenDetector", "JwtTokenDetector",
    "MailchimpDetector", "NpmDetector", "OpenAIDetector", "PrivateKeyDetector", "PypiTokenDetector",
    "SendGridDetector", "SlackDetector", "SoftlayerDetector", "SquareOAuthDetector", "StripeDetector",
    "TelegramBotTokenDetector", "TwilioKeyDetector",
)  # fmt: skip
"""Without its detectors of entropy and of words, which find hashes and prose."""


async def check_texts(settings: Settings, layout: Layout, *, fix: bool) -> list[Finding]:
    """Look at every text of one store."""
    redact = redactor(redaction_key(settings.store_root, create=False))
    found = await to_thread.run_sync(_files, layout.root, redact)
    try:
        database = await Database.open(layout.database, write=fix)
    except PipelineError:
        return found  # the database's own checks have said why
    try:
        return [*found, *await _turns(database, redact, fix)]
    finally:
        await database.close()


async def _turns(database: Database, redact: Redactor, fix: bool) -> list[Finding]:
    ours: dict[int, Counter[str]] = {}
    theirs: dict[int, Counter[str]] = {}
    last, installed, count = 0, has_detect_secrets(), 0
    while rows := await database.rows(
        "SELECT id, body FROM content WHERE id>? ORDER BY id LIMIT ?", (last, PIECE)
    ):
        last = rows[-1][0]
        count += len(rows)
        pieces = [(row[0], row[1]) for row in rows]
        for content_id, mine, other in await to_thread.run_sync(_look, pieces, redact, installed):
            if mine:
                ours[content_id] = mine
            elif other:
                theirs[content_id] = other
    findings = []
    if ours:
        finding = Finding("secrets", "problem", await _told(database, ours), fix="redact them")
        if fix:
            from pipeline.keeping import redacted

            async with database.transaction():
                # Saved states hold the last turns too: their wires are read again, with today's rules.
                wires = {(one.session_id, one.agent_id) for one in await occurrences_of(database, ours)}
                known = await sources(database)
                await read_again(database, [known[wire].id for wire in wires if wire in known])
                await rewrite(database, partial(redacted, redact=redact))
                await database.set_meta("shed", 1)
            finding = finding.mended()
        findings.append(finding)
    if theirs:
        text = "detect-secrets takes for secrets: " + await _told(database, theirs)
        findings.append(
            Finding("secrets", "warning", text, hint="Look at them; `pipeline forget --turn` takes one away.")
        )
    if not installed:
        findings.append(Finding("secrets", "note", "detect-secrets is not installed: only our own rules were asked",
                                hint="Install kimi-memory-pipeline[dev] for the second opinion."))  # fmt: skip
    if not ours and not theirs:
        findings.append(Finding("secrets", "ok", f"nothing that looks like a secret in {count} turns"))
    return findings


def _look(
    rows: Sequence[tuple[int, bytes]], redact: Redactor, second: bool
) -> list[tuple[int, Counter[str], Counter[str]]]:
    texts: dict[int, list[str]] = {}
    for content_id, body in rows:
        with suppress(ValueError):  # the database's own checks name what cannot be read
            texts[content_id] = texts_of(codec.unpack(body))
    others = opinion(texts) if second else {}
    return [(key, slipped(each, redact), others.get(key, Counter())) for key, each in texts.items()]


def slipped(texts: Sequence[str], redact: Redactor) -> Counter[str]:
    """Kinds of secrets that our rules find in texts that were redacted before."""
    redact.counts.clear()
    for text in texts:
        redact(text)
    return Counter(redact.counts)


def has_detect_secrets() -> bool:
    """Whether the second opinion is to be had (extra ``dev``)."""
    from importlib.util import find_spec

    return find_spec("detect_secrets") is not None


def opinion(texts: Mapping[int, Sequence[str]]) -> dict[int, Counter[str]]:
    """Kinds that detect-secrets finds in these texts, but for our own placeholders."""
    from detect_secrets.core import scan
    from detect_secrets.settings import transient_settings

    found: dict[int, Counter[str]] = {}
    with transient_settings({"plugins_used": [{"name": name} for name in PLUGINS]}):
        for key, some in texts.items():
            lines = {line for text in some for line in text.split("\n")}
            kinds = Counter(
                str(secret.type)
                for line in lines
                for secret in scan.scan_line(line)
                if not _ours(line, str(secret.secret_value or ""))
            )
            if kinds:
                found[key] = kinds
    return found


def _ours(line: str, value: str) -> bool:
    """Whether what was found is (part of) a placeholder."""
    at = line.find(value)
    return not value or MARK in value or line.rfind(MARK, 0, at + 1) > line.rfind("]", 0, at + 1)


async def _told(database: Database, found: dict[int, Counter[str]]) -> str:
    kinds: Counter[str] = Counter()
    for counts in found.values():
        kinds.update(counts)
    places = await occurrences_of(database, list(found)[:SHOWN])
    names = list(dict.fromkeys(f"{one.session_id} turn {one.turn_id}" for one in places))[:SHOWN]
    more = f" and {len(found) - len(names)} more" if len(found) > len(names) else ""
    return f"{', '.join(f'{kind} {n}' for kind, n in sorted(kinds.items()))} in {', '.join(names)}{more}"


def _files(root: Path, redact: Redactor) -> list[Finding]:
    findings = []
    for path in sorted(root.rglob("*")):
        if path.suffix not in TEXT_FILES or not path.is_file() or path.stat().st_size > FILE_LIMIT:
            continue
        kinds = slipped(_strings(path), redact)
        if kinds:
            text = f"{path}: {', '.join(f'{kind} {n}' for kind, n in sorted(kinds.items()))}"
            findings.append(
                Finding("secrets", "problem", text, hint="Edit it: it is yours, or made from what is.")
            )
    return findings


def _strings(path: Path) -> list[str]:
    """The texts of a file: of JSON its strings, whose names and quotes are no part of what was redacted."""
    text = files.read_text(path) or ""
    return list(_each_string(text)) if path.suffix == ".json" else [text]


def _each_string(value: object) -> Iterator[str]:
    if isinstance(value, str):
        try:  # a kept version of a theme is a text that is JSON
            inner = orjson.loads(value) if value.startswith("{") else None
        except orjson.JSONDecodeError:
            inner = None
        if inner is None:
            yield value
        else:
            yield from _each_string(inner)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _each_string(each)
    elif isinstance(value, list):
        for each in value:
            yield from _each_string(each)
