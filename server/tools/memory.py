"""The tools that keep Markdown memories and the essence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from anyio import to_thread

from pipeline.errors import BadInput
from pipeline.store import essence, names
from pipeline.store.material import material, score
from server.call import Call
from server.current_session import current_session
from server.pages import fenced, paged, some_lines
from server.space import Space
from stages.snippet import one_line, shorten

ANSWER_CHARS = 45_000
R = TypeVar("R")


async def _work(function: Callable[..., R], *arguments: Any, **named: Any) -> R:
    """File work off the loop. It is not abandoned on cancel: a write is finished, and a resend finds it done."""
    return await to_thread.run_sync(partial(function, *arguments, **named))


# --- writing -----------------------------------------------------------------------------------------------


async def remember(call: Call) -> str:
    """Save a memory, with where it was said."""
    space = await call.space()
    written = await _work(
        space.memories.remember,
        call["key"],
        call["content"],
        folder=call["folder"],
        tags=call["tags"],
        themes=call["themes"] or (),
        title=call["title"],
        mode=call["mode"],
        source=await _source(space, call),
    )
    place = f"{written['folder']}/{written['key']}"
    what = "saved" if written["created"] else "updated" if written["changed"] else "unchanged:"
    lines = [f"{what} {place} “{one_line(written['title'])}”", f"file: {written['filePath']}"]
    if written["tags"]:
        lines.append(f"tags: {', '.join(written['tags'])}")
    if written["themes"]:
        lines.append(f"linked from themes: {', '.join(written['themes'])}")
    if written["previous"]:
        lines.append(f"the version before it is kept: {written['previous']}")
    return "\n".join(lines)


async def _source(space: Space, call: Call) -> Mapping[str, Any] | None:
    """Where the memory was said: as given, else the asking session where evidence shows it."""
    given = call["source"]
    if given:
        return {**given, "tool": "remember"}
    current = await current_session(space, call)
    if current.session is None:
        return None
    found: dict[str, Any] = {"session": current.session.session_id, "tool": "remember"}
    return found if current.turn_id is None else {**found, "turn": current.turn_id}


async def delete(call: Call) -> str:
    """Move a memory to the trash."""
    space = await call.space()
    done = await _work(space.memories.delete, call["key"], call["folder"])
    if not done["success"]:
        raise _missing(done)
    place = f"{done['folder']}/{done['key']}"
    return f"{'deleted' if done['deleted'] else 'already deleted:'} {place}. It lies in .trash/ and can be restored."


async def move(call: Call) -> str:
    """Move or rename a memory."""
    space = await call.space()
    done = await _work(space.memories.move, call["key"], call["folder"], call["toFolder"], call["newKey"])
    if not done["success"]:
        raise _missing(done)
    return _moved(done)


def _moved(done: Mapping[str, Any]) -> str:
    source, target = f"{done['fromFolder']}/{done['key']}", f"{done['toFolder']}/{done['newKey']}"
    return f"moved {source} to {target}; theme links follow" if done["moved"] else f"already at {target}"


async def archive_memory(call: Call) -> str:
    """Move a memory below archive/."""
    space = await call.space()
    done = await _work(space.memories.archive, call["key"], call["folder"])
    if not done["success"]:
        raise _missing(done)
    return _moved(done)


async def restore_memory(call: Call) -> str:
    """Bring the newest deleted version back."""
    space = await call.space()
    done = await _work(space.memories.restore, call["key"], call["folder"])
    if not done["success"]:
        raise _missing(done)
    place = f"{done['folder']}/{done['key']}"
    return f"restored {place}" if done["restored"] else f"{place} is there: nothing to restore"


async def sync_workspace_index(call: Call) -> str:
    """Make index.json equal to the files."""
    space = await call.space()
    done = await _work(space.memories.index.sync, call["folderComments"])
    report = ", ".join(f"{name} {count}" for name, count in done["report"].items())
    what = "index.json was right already" if done["skipped"] else "index.json is written anew"
    return f"{what}; {report}\nstructureHash: {done['structureHash']}"


def _missing(done: Mapping[str, Any]) -> BadInput:
    near = [f"{one['folder']}/{one['key']}" for one in done["nearest"]]
    hint = f"Nearest: {', '.join(near)}." if near else "search finds memories by what they say."
    return BadInput(f"key: no memory {shorten(done['key'], 80)!r} in {done['folder']}", hint=hint)


# --- reading -----------------------------------------------------------------------------------------------


async def recall(call: Call) -> str:
    """One memory whole."""
    space = await call.space()
    found = await _work(space.memories.recall, call["key"], call["folder"])
    if not found["found"]:
        raise _missing(found)
    place = f"{found['folder']}/{found['key']}"
    await _work(space.usage.record, [place])
    content = await _work(space.redact, found["content"])  # a person may have written a secret into the file
    return paged(content, ANSWER_CHARS, call["cursor"], f"recall {place}", head=space.redact(_heading(found)))


def _heading(found: Mapping[str, Any]) -> str:
    """What is known of a memory besides its text, a line each."""
    lines = [f"{found['folder']}/{found['key']} “{one_line(found['title'])}”"]
    lines.append(f"created {found['createdAt']}, updated {found['updatedAt']}")
    if found["tags"]:
        lines.append(f"tags: {one_line(', '.join(found['tags']))}")
    if found.get("source"):
        lines.append(
            "source: " + one_line(", ".join(f"{name} {value}" for name, value in found["source"].items()))
        )
    if found.get("problem"):
        lines.append(f"its frontmatter cannot be read: {one_line(found['problem'])}")
    return "\n".join(lines)


async def recall_recent(call: Call) -> str:
    """The memories changed last, whole; long ones by their beginning."""
    space = await call.space()
    items = (await _work(space.memories.recall_recent, call["limit"]))["items"]
    if not items:
        return "No memory is saved yet."
    room = ANSWER_CHARS // len(items) - 400
    parts = []
    for item in items:
        text = space.redact(item["content"])
        cut = f"\n… recall {item['key']} for the rest" if len(text) > room else ""
        parts.append(f"{space.redact(_heading(item))}\n{fenced(shorten(text, max(200, room)))}{cut}")
    return "\n\n".join(parts)


async def search(call: Call) -> str:
    """Memories by what they say."""
    space = await call.space()
    hits, total = await _work(space.memories.find, call["query"], call["folder"], call["limit"])
    if not hits:
        return f"No memory matches “{one_line(call['query'])}”. Past conversations: search_context."
    lines = []
    for number, hit in enumerate(hits, 1):
        lines.append(
            f"{number}  {_line(hit.memory.name, hit.memory.title, hit.memory.tags, hit.memory.updated_at)}"
        )
        lines += [f"   «{shorten(one_line(snippet), 240)}»" for snippet in hit.snippets]
    body = space.redact(some_lines(lines, ANSWER_CHARS, "{} more lines: ask for fewer"))
    return f"{total} {'memory matches' if total == 1 else 'memories match'}; recall reads one\n{fenced(body)}"


async def list_memories(call: Call) -> str:
    """Memories of a folder or tag."""
    space = await call.space()
    found = await _work(space.memories.list, call["folder"], call["limit"], call["tag"])
    where = f" below {names.folder_name(call['folder'])}" if call["folder"] else ""
    where += f" with tag {call['tag']}" if call["tag"] else ""
    if not found["items"]:
        return f"No memory{where}."
    lines = [
        _line(f"{one['folder']}/{one['key']}", one["title"], one["tags"], one["updatedAt"])
        for one in found["items"]
    ]
    body = space.redact(some_lines(lines, ANSWER_CHARS, "{} more: name a folder"))
    left = found["total"] - len(found["items"])
    more = f"\n{left} more: raise limit, or name a folder or tag" if left else ""
    return f"{found['total']} {'memory' if found['total'] == 1 else 'memories'}{where}\n{fenced(body)}{more}"


def _line(place: str, title: str, tags: Sequence[str], updated_at: str) -> str:
    key = place.rpartition("/")[2]
    parts = [place, updated_at[:10]]
    parts += [one_line(title)] if title != key else []
    parts += [f"[{one_line(', '.join(tags))}]"] if tags else []
    return shorten("  ".join(parts), 300)


async def list_tags(call: Call) -> str:
    """Every tag with its count."""
    space = await call.space()
    counts = (await _work(space.memories.list_tags))["counts"]
    if not counts:
        return "No tag is in use yet."
    return fenced(some_lines([f"{one_line(tag)}  {count}" for tag, count in counts.items()], ANSWER_CHARS))


# --- the essence -------------------------------------------------------------------------------------------


async def organize_memories(call: Call) -> str:
    """The material for an essence, or the essence stored."""
    space = await call.space()
    if call["content"] is not None and call["content"].strip():
        return await _work(_store_essence, space, call["content"], call["title"] or "")
    return await _work(_material, space, call["sources"], call["page"])


def _store_essence(space: Space, content: str, title: str) -> str:
    known = [one.name for one in space.memories.all()]
    done = space.essence.write(content, known, title)
    lines = [
        f"{'stored' if done['changed'] else 'unchanged:'} {done['path']}: {done['bytes']} of {done['limit']} bytes, "
        f"{done['facts']} facts, {done['cited']} cite a memory"
    ]
    if done["uncitedTotal"]:
        lines.append(f"{done['uncitedTotal']} without a source: add (memory/<folder>/<key>) to each")
        lines += [f"- line {one['line']}: {one_line(one['text'])}" for one in done["uncited"]]
    if done["dangling"]:
        lines.append("citations of memories that are not there:")
        lines += [
            f"- line {one['line']}: {one['cites']}{' (in the archive now)' if one['archived'] else ''}"
            for one in done["dangling"]
        ]
    if done["previous"]:
        lines.append(f"the version before it is kept: {done['previous']}")
    return "\n".join(lines)


def _material(space: Space, sources: Sequence[str] | None, page: int) -> str:
    memories = space.memories.all()
    if sources:
        wanted = {names.fold(one.removesuffix(".md")) for one in sources}
        memories = tuple(one for one in memories if {names.fold(one.name), names.fold(one.key)} & wanted)
        if not memories:
            raise BadInput(
                f"sources: none of {', '.join(sources[:5])} is a memory", hint="list gives their names."
            )
    present = space.essence.read()
    scored = score(
        memories,
        now=space.service.now(),
        uses=space.usage.counts(),
        links=space.links.counts(),
        cited=essence.citations(present),
    )
    found = material(scored, present, page=page)
    lines = [f"{found['total']} memories, page {found['page']} of {found['pages']}"]
    if "rules" in found:
        lines += ["", found["rules"], "", f"The essence as it is ({found['essenceBytes']} bytes):"]
        lines.append(fenced(space.redact(present)) or "none yet")
    lines += ["", "Memories, the most telling first:", fenced(space.redact(found["material"])) or "none yet"]
    if found["page"] < found["pages"]:
        lines.append(f"more: page {found['page'] + 1}")
    return "\n".join(lines)
