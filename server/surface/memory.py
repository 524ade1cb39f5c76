"""The tools that keep Markdown memories, the essence and proposals."""

from __future__ import annotations

from server.surface import Schema, Tool, choice, number, text, texts

KEY = text("kebab-case name", most=400, least=1)
FOLDER = text("memory/decisions, knowledge, rules, reference, notes …")
TAGS = texts("3 to 5 words")
SOURCE: Schema = {
    "type": "object",
    "description": "where it was said",
    "properties": {"sessionId": {"type": "string"}, "turnId": {"type": "integer"}},
}

TOOLS = (
    Tool(
        "remember",
        "Save a lasting memory as a Markdown file: a decision the user confirmed, a convention, a hard-won fix, or "
        "when told to remember. Not for guesses, passing debugging, or what code and git already say. An "
        "overwritten version is kept.",
        "memory:remember",
        "overwrite",
        {
            "key": KEY,
            "content": text("Markdown: background and conclusion", most=1_000_000),
            "folder": FOLDER,
            "title": text("one sentence", most=400),
            "tags": TAGS,
            "themes": texts("themes to link it to"),
            "mode": choice("create", "replace", "append", default="replace"),
            "source": SOURCE,
        },
        ("key",),
    ),
    Tool(
        "recall",
        "Read one memory whole by its key (or folder/key as cited). On a miss it names the nearest keys.",
        "memory:recall",
        "read",
        {"key": KEY, "folder": FOLDER, "cursor": text("from the answer before")},
        ("key",),
    ),
    Tool(
        "search",
        "Search saved memories (titles, tags, text), best first. For past conversations use search_context.",
        "memory:search",
        "read",
        {
            "query": text(most=2000, least=1),
            "folder": text("this folder and below"),
            "limit": number(least=1, most=100, default=10),
        },
        ("query",),
    ),
    Tool(
        "list",
        "List saved memories, newest first; a folder includes its sub-folders.",
        "memory:list_memories",
        "read",
        {"folder": FOLDER, "limit": number(least=1, most=500, default=50), "tag": text()},
    ),
    Tool(
        "delete",
        "Move a memory to the trash, when the user asks to or it was replaced. It can be restored.",
        "memory:delete",
        "overwrite",
        {"key": KEY, "folder": FOLDER},
        ("key",),
    ),
    Tool(
        "move",
        "Move or rename a memory; links from themes follow. Never overwrites.",
        "memory:move",
        "write",
        {
            "key": KEY,
            "folder": FOLDER,
            "toFolder": text("new folder", least=1),
            "newKey": text("new key", most=400),
        },
        ("key", "toFolder"),
    ),
    Tool(
        "organize_memories",
        "Write the essence (at most 15 KiB that every session starts with). Step 1, without content: returns "
        "rules, the present essence and the memories, paged. Step 2: call again with the whole new text as content.",
        "memory:organize_memories",
        "overwrite",
        {
            "content": text("the whole essence", most=200_000),
            "title": text(most=400),
            "sources": texts("only these memories, as folder/key", most=500),
            "page": number(least=1, most=1000, default=1),
        },
    ),
    Tool(
        "propose_memories",
        "Propose memories from recent decisions and fixes in the sessions, and list the open proposals with ids. "
        "Show them to the user; nothing is saved until resolve_proposal.",
        "proposals:propose_memories",
        "write",
        {
            "limit": number(least=1, most=100, default=10),
            "status": choice("open", "accepted", "rejected", default="open"),
        },
    ),
    Tool(
        "resolve_proposal",
        "Settle a proposal as the user decided: accept saves it, edit saves it with your changes, reject drops it "
        "for good.",
        "proposals:resolve_proposal",
        "write",
        {
            "id": text("from propose_memories", most=64, least=1),
            "action": choice("accept", "edit", "reject"),
            "text": text("for edit", most=100_000),
            "title": text(most=400),
            "folder": text(),
            "key": text(most=400),
            "tags": texts(),
        },
        ("id", "action"),
    ),
    Tool(
        "recall_recent",
        "The memories changed last, whole, newest first.",
        "memory:recall_recent",
        "read",
        {"limit": number(least=1, most=50, default=5)},
        default=False,
    ),
    Tool("list_tags", "All tags in use with their counts.", "memory:list_tags", "read", {}, default=False),
    Tool(
        "archive_memory",
        "Move a memory below archive/: kept, ranked last, out of the essence.",
        "memory:archive_memory",
        "write",
        {"key": KEY, "folder": FOLDER},
        ("key",),
        default=False,
    ),
    Tool(
        "restore_memory",
        "Bring the newest deleted version of a memory back from the trash.",
        "memory:restore_memory",
        "write",
        {"key": KEY, "folder": FOLDER},
        ("key",),
        default=False,
    ),
    Tool(
        "sync_workspace_index",
        "Make index.json equal to the Markdown files; set comments of folders.",
        "memory:sync_workspace_index",
        "write",
        {
            "folderComments": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "folder path to comment",
            }
        },
        default=False,
    ),
)
