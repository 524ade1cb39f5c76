"""The tools that recall conversations."""

from __future__ import annotations

from server.surface import Schema, Tool, choice, number, switch, text, texts

REFERENCE: Schema = {
    "type": "object",
    "properties": {
        "sessionId": {"type": "string"},
        "turnId": {"type": "integer"},
        "agentId": {"type": "string"},
        "position": {"type": "integer"},
    },
    "required": ["sessionId", "turnId"],
}
SESSION = text("your own session's id, if you know it")
CHARS = "characters of the answer"
LEAST_SEARCH_CHARS = 400
"""``pipeline.answers.LEAST_CHARS``, which would cost the start an import of the tokenizer."""

_BOOTSTRAP = {
    "detailed_rounds": number("latest turns shown in detail", most=20, default=3),
    "summary_rounds": number("turns before them, a line each", most=50, default=2),
    "max_chars": number(CHARS, least=2000, most=45_000, default=12_000),
    "session_id": SESSION,
    "force": switch("read all logs and files anew first"),
}

TOOLS = (
    Tool(
        "bootstrap_workspace",
        "Call first in every session. Returns what is known of this project: standing essence, the tree of saved "
        "memories ([new] = newest), what the previous session did, open memory proposals, themes, notes.",
        "context:bootstrap_workspace",
        "read",
        _BOOTSTRAP,
    ),
    Tool(
        "search_context",
        "Search all past conversations of this project (prompts, answers, commands, paths, errors), English or "
        "Chinese. Call before saying something was never discussed, and to find turns for a theme. Words, "
        '"phrases", file:x since:2026-06-01. Returns ranked turns with sessionId and turnId for load_turn_context.',
        "context:search_context",
        "read",
        {
            "query": text(most=2000, least=1),
            "date_from": text("local day, 2026-06-20, or ISO time"),
            "date_to": text("inclusive"),
            "limit": number(least=1, most=100, default=10),
            "cluster_gap_seconds": number("a longer pause splits a cluster", most=86_400, default=90),
            "max_cluster_size": number(least=1, most=200, default=15),
            "detail": choice("compact", "normal", "full", default="compact"),
            "max_output_chars": number(least=LEAST_SEARCH_CHARS, most=45_000, default=6000),
            "cursor": text("from the answer before"),
            "format": choice("text", "json", default="text"),
            "save_view": switch("keep it for list_search_views"),
        },
        ("query",),
    ),
    Tool(
        "load_turn_context",
        "Load turns whole, word for word from the session log: use it before quoting or relying on a past turn. "
        "include adds tool arguments, tool results or file diffs. Long answers are paged by cursor.",
        "context:load_turn_context",
        "read",
        {
            "references": texts("turns from search_context or trace_theme", of=REFERENCE),
            "include": texts(of={"type": "string", "enum": ["args", "results", "diffs"]}, most=3),
            "max_chars": number(CHARS, least=1000, most=45_000, default=20_000),
            "cursor": text("from the answer before"),
        },
        ("references",),
    ),
    Tool(
        "load_more_context",
        "Go further back in one session: the turns before before_turn_id, newest last. Without session_id it is "
        "the session that bootstrap_workspace showed.",
        "context:load_more_context",
        "read",
        {
            "before_turn_id": number(most=10_000_000),
            "session_id": text(),
            "limit": number(least=1, most=50, default=5),
            "cursor": text("from the answer before"),
        },
    ),
    Tool(
        "load_workspace_context",
        "The same as bootstrap_workspace, under its older name.",
        "context:bootstrap_workspace",
        "read",
        _BOOTSTRAP,
        default=False,
    ),
    Tool(
        "get_current_workspace",
        "Which directory, store and session this is, and how the session was found.",
        "context:get_current_workspace",
        "read",
        {"session_id": SESSION},
        default=False,
    ),
    Tool(
        "list_sessions",
        "The sessions of this project, newest first: id, time, title, turns.",
        "context:list_sessions",
        "read",
        {"limit": number(least=1, most=200, default=20), "cursor": text("from the answer before")},
        default=False,
    ),
    Tool(
        "list_search_views",
        "Past searches that were kept, newest first.",
        "views:list_search_views",
        "read",
        {"limit": number(least=1, most=200, default=20)},
        default=False,
    ),
    Tool(
        "delete_search_view",
        "Delete a kept search by its key. Turns are never deleted.",
        "views:delete_search_view",
        "overwrite",
        {
            "key": text("from list_search_views", least=1),
            "deleteRefinedTurns": switch("ignored: turns are shared"),
        },
        ("key",),
        default=False,
    ),
)
