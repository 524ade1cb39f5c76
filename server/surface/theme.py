"""The tools that follow a subject across sessions."""

from __future__ import annotations

from server.surface import Tool, choice, number, switch, text, texts

THEME = text(most=200, least=1)
_TURN = {
    "sessionId": text(),
    "turnId": number(most=10_000_000),
    "agentId": text(),
    "position": number(most=10_000_000),
}
_MEMORY = {"memoryKey": text(most=400), "memoryFolder": text()}

TOOLS = (
    Tool(
        "run_theme",
        "Build or refresh a theme: find its turns in all sessions, refine, cluster, save. For a new theme first "
        "confirm its scope and 1 to 3 seed keywords with the user; without keywords it only suggests some. Runs in "
        "the background: returns the result, or progress to look at with pipeline_status. Then trace_theme.",
        "theme:run_theme",
        "write",
        {
            "theme": THEME,
            "keywords": texts("words only this subject uses; added to the theme's", most=30),
            "replace_keywords": switch("drop the theme's old keywords"),
            "since": text("local day or ISO time"),
            "until": text("inclusive"),
            "wait_seconds": number("how long to wait for the result", most=50, default=25),
        },
        ("theme",),
    ),
    Tool(
        "trace_theme",
        "How a subject developed: timeline of clusters by date, decisions with quotes and what was decided later, "
        "files, linked memories. Call when asked how X came to be or why we chose Y.",
        "tracing:trace_theme",
        "read",
        {
            "theme": THEME,
            "includeTurnContent": switch("also each turn's question and answer, shortened"),
            "format": choice("text", "json", default="text"),
            "max_chars": number(least=1000, most=45_000, default=12_000),
            "cursor": text("from the answer before"),
        },
        ("theme",),
    ),
    Tool(
        "list_themes",
        "The themes there are, and suggestions: subjects that recur across sessions and have no theme yet.",
        "theme:list_themes",
        "read",
        {"limit": number(least=1, most=200, default=30), "suggest": {"type": "boolean", "default": True}},
    ),
    Tool(
        "tag_theme",
        "Put a turn (sessionId and turnId) or a memory (memoryKey) into a theme for good; a new theme is begun. No "
        "run takes it out.",
        "theme:tag_theme",
        "write",
        {"theme": THEME, **_TURN, **_MEMORY, "memoryTitle": text(most=400)},
        ("theme",),
    ),
    Tool(
        "untag_theme",
        "Take a turn or a memory out of a theme. No run brings the turn back.",
        "theme:untag_theme",
        "overwrite",
        {"theme": THEME, **_TURN, **_MEMORY},
        ("theme",),
    ),
    Tool(
        "refine_session_turns",
        "Refine turns of one session (summary, facts, entities) and return them. Refined once, reused for ever.",
        "refine:refine_session_turns",
        "write",
        {
            "sessionId": text(least=1),
            "turnIds": texts("default: the latest", of={"type": "integer"}, most=200),
            "limit": number(least=1, most=200, default=20),
        },
        ("sessionId",),
    ),
    Tool(
        "pipeline_status",
        "Progress and results of run_theme, how complete the index is, and what went wrong.",
        "system:pipeline_status",
        "read",
        {"theme": text("only this theme's run", most=200)},
    ),
    Tool(
        "manage_theme",
        "rename a theme (to = new name), merge it into another (to = that theme), or undo its last change.",
        "theme:manage_theme",
        "overwrite",
        {"action": choice("rename", "merge", "undo"), "theme": THEME, "to": text(most=200)},
        ("action", "theme"),
        default=False,
    ),
    Tool(
        "delete_theme",
        "Delete a theme; no turn and no memory goes. manage_theme undo brings it back.",
        "theme:delete_theme",
        "overwrite",
        {"theme": THEME},
        ("theme",),
        default=False,
    ),
    Tool(
        "forget",
        "Forget turns for good, only when the user asks to: in the index, themes, searches, proposals, and on the "
        "disk; no rescan brings them back. Name one of: session (with turnId: that turn), time range, theme, match, "
        "everything. Without confirm nothing is changed: returns what would go and stay. Show that to the user first.",
        "forgetting:forget",
        "overwrite",
        {
            "sessionId": text("alone: also what is said in it later"),
            "turnId": number("only this turn, with its sub-agents and copies", most=10_000_000),
            "agentId": text(),
            "position": number("where two turns share a number", most=10_000_000),
            "since": text("local day or ISO time"),
            "until": text("inclusive"),
            "theme": text("it and all its turns", most=200),
            "match": text("turns that hold this text, any case", most=2000),
            "everything": switch("all turns of the workspace up to now"),
            "memories": switch("also memories written from them"),
            "confirm": switch("do it"),
        },
        default=False,
    ),
    Tool(
        "open_memory_dashboard",
        "Where a person finds everything as files to read; opens nothing.",
        "system:open_memory_dashboard",
        "read",
        {},
        default=False,
    ),
)
