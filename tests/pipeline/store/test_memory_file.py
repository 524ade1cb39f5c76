import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.store import memory_file

ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=60)
LINE = ANY_TEXT.map(memory_file.printable)
TAGS = st.lists(ANY_TEXT, max_size=5).map(memory_file.clean_tags)
BODY = ANY_TEXT.map(memory_file.printable_body)


@settings(max_examples=200, deadline=None)
@given(title=LINE, tags=TAGS, body=BODY, note=LINE)
def test_any_title_tags_and_body_come_back_as_they_went(
    title: str, tags: tuple[str, ...], body: str, note: str
) -> None:
    fields: dict[str, memory_file.Value] = {"key": "k", "title": title, "tags": list(tags)}
    file = memory_file.create({**fields, "source": {"session": note, "turn": 3}}, body)
    again = memory_file.parse(memory_file.render(file))
    assert again.problem is None
    assert again.fields["title"] == title
    assert again.tags == tags
    assert again.body == body
    assert again.fields["source"] == {"session": note, "turn": "3"}


@given(st.text(max_size=200))
def test_any_text_can_be_read_and_printed_again(text: str) -> None:
    file = memory_file.parse(text)
    if "\r" not in text and not text.lstrip("\ufeff").startswith("---"):
        assert memory_file.render(file) == text


HAND_MADE = """\
# mine
title: A "title"   # why
tags: [a, 'b, c', "d"]
extra:
    deep: {x: 1, y: [2, 3]}
reviewed: 2026-01-02
updatedAt: 2026-01-02 03:04:05
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_an_edit_changes_its_field_alone(newline: str, mark: str) -> None:
    text = mark + f"---\n{HAND_MADE}---\n\nBody\n\n    code\n".replace("\n", newline)
    file = memory_file.parse(text)
    assert file.title == 'A "title"'
    assert file.tags == ("a", "b, c", "d")
    assert memory_file.render(memory_file.edited(file, {})) == text
    changed = memory_file.render(memory_file.edited(file, {"updatedAt": "2027-01-01T00:00:00.000Z"}))
    assert changed == text.replace("2026-01-02 03:04:05", "'2027-01-01T00:00:00.000Z'")


def test_tags_are_read_from_lists_of_any_style_and_from_one_text() -> None:
    for written in ("[x, y]", "\n- x\n- y", "\n  - 'x'\n  - \"#y\"", "x, y", "x，y", "['x', X, y]"):
        assert memory_file.parse(f"---\ntags: {written}\n---\n").tags == ("x", "y")


def test_scalars_mean_what_they_look_like() -> None:
    file = memory_file.parse("---\ntitle: 1.0\ntags: [yes, no, 2026-01-01, ~, 0x10]\n---\n")
    assert file.title == "1.0"
    assert file.tags == ("yes", "no", "2026-01-01", "0x10")
    assert memory_file.parse("---\ntitle: ~\n---\n# H").title == "H"
    assert memory_file.parse("---\ntitle: 'null'\n---\n# H").title == "null"


def test_the_other_servers_quoting_is_read_as_yaml() -> None:
    written = "---\nkey: 'k'\ntitle: 'It''s'\ntags:\n  - a: b\n  - c\ncreatedAt: '2026-06-23'\n---\n\nB\n"
    file = memory_file.parse(written)
    assert (file.title, file.tags, file.body) == ("It's", ("a: b", "c"), "B")


def test_what_we_write_survives_the_other_servers_reader() -> None:
    file = memory_file.create({"title": 'It\'s a: "test"', "tags": ["it's", "plain"]}, "B")
    text = memory_file.render(file)
    assert "''" not in text
    assert "[" not in text
    assert text.startswith("---\n") and "\n---\n\nB\n" in text


def test_a_file_without_frontmatter_is_all_body_titled_by_its_heading() -> None:
    file = memory_file.parse("```sh\n# no title\n```\n\n## The title ##\n\ntext\n\n---\n\nmore\n\n---\n")
    assert file.head is None and file.title == "The title"
    assert file.body.endswith("---") and file.body.startswith("```sh")


@pytest.mark.parametrize("text", ["---\nhello\n---\nworld", "---\nnever closed\n", "---\n- a\n- b\n---\nx"])
def test_rules_at_the_top_are_no_frontmatter(text: str) -> None:
    file = memory_file.parse(text)
    assert file.head is None and file.problem is None
    changed = memory_file.render(memory_file.edited(file, {"key": "k"}))
    assert changed == f"---\nkey: k\n---\n\n{text}"


def test_broken_yaml_is_reported_with_its_line_and_read_as_well_as_it_can_be() -> None:
    file = memory_file.parse("---\nkey: k\ntitle: a: b\ntags:\n  - x\n---\nthe body\n")
    assert file.problem is not None and file.problem.line == 3
    assert (file.title, file.tags, file.body) == ("a: b", ("x",), "the body")
    with pytest.raises(ValueError, match="line 3"):
        memory_file.edited(file, {"title": "new"})


def test_a_field_given_twice_is_never_edited_away() -> None:
    file = memory_file.parse("---\ntitle: a\ntitle: b\n---\n")
    with pytest.raises(ValueError, match="line"):
        memory_file.edited(file, {"tags": ["x"]})


def test_a_frontmatter_of_comments_alone_keeps_them() -> None:
    file = memory_file.edited(memory_file.parse("---\n# keep me\n---\nbody"), {"key": "k"})
    assert "# keep me" in memory_file.render(file)
    assert file.fields == {"key": "k"}


@pytest.mark.parametrize(
    ("head", "edited"),
    [
        ("{key: a, title: b}", "{key: a, title: new}"),
        ("base: &b [x]\ntags: *b\ntitle: b", "base: &b [x]\ntags: *b\ntitle: new"),
        (
            "note: |\n  two\n\n  lines\n\ntitle: b # c\n\n# end",
            "note: |\n  two\n\n  lines\n\ntitle: new # c\n\n# end",
        ),
        ("title: >-\n  folded\n  text\nkey:   a", "title: >-\n  new\nkey:   a"),
        ("key: a", "key: a\ntitle: new"),
        ('"title": b\n? key\n: a', '"title": new\n? key\n: a'),
    ],
)
def test_every_way_to_write_a_field_can_be_edited(head: str, edited: str) -> None:
    file = memory_file.parse(f"---\n{head}\n---\nbody\n")
    changed = memory_file.edited(file, {"title": "new"})
    assert changed.head == edited + "\n"
    assert changed.title == "new" and changed.body == "body"


def test_hostile_yaml_is_a_problem_not_a_crash() -> None:
    assert memory_file.parse("---\na: " + "[" * 3000 + "]" * 3000 + "\n---\nbody").problem is not None
    layers = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 30))
    bomb = memory_file.parse(f"---\nl0: &l0 [x]\n{layers}\ntags: [{{a: *l29}}]\ntitle: *l29\n---\nbody")
    assert (bomb.tags, bomb.title, bomb.body) == (("a",), "", "body")
