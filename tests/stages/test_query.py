"""Queries: everything is text unless it is plainly an operator."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.query import QUERY_LIMIT, TERM_LIMIT, Filter, parse, parse_text


def texts(query: str) -> list[str]:
    return [term.text for term in parse(query).terms]


def test_stop_words_of_both_languages_weigh_nothing() -> None:
    assert texts("why is the port busy") == ["port", "busy"]
    assert texts("端口被占用怎么办") == ["端口", "占用"]
    assert texts("启动时端口的冲突") == ["启动", "动时", "时端", "端口", "冲突"]


def test_a_function_character_inside_a_word_does_not_break_it() -> None:
    assert texts("目的") == ["目的"]
    assert "存在" in texts("不存在")


@pytest.mark.parametrize("query", ["the of what", "怎么办", "的"])
def test_a_query_of_stop_words_alone_still_asks(query: str) -> None:
    found = parse(query)
    assert found.terms and found.only_stop_words


def test_an_identifier_is_one_term_with_parts() -> None:
    (term,) = parse("--only-cloud-sync").terms
    assert term.text == "only-cloud-sync"
    assert (term.whole, term.parts) == (("onlycloudsync",), ("onli", "cloud", "sync"))


def test_synonyms_cross_languages() -> None:
    assert "端口" in parse("port").terms[0].also
    assert "port" in parse("端口").terms[0].also
    database = {token for term in parse("数据库").terms for token in term.also}
    assert "databas" in database


def test_operators() -> None:
    found = parse(
        '"port busy" NOT windows NOT "old one" file:src/a.ts tool:Bash decision:true since:2026-06 x'
    )
    assert [phrase.tokens for phrase in found.phrases] == [("port", "busi")]
    assert [phrase.tokens for phrase in found.excluded] == [("window",), ("old", "one")]
    assert found.filters == (
        Filter("file", "src/a.ts"),
        Filter("tool", "Bash"),
        Filter("decision", "true"),
        Filter("since", "2026-06"),
    )
    assert [term.text for term in found.terms] == ["port", "busy", "x"]
    assert parse('file:"my file.ts"').filters == (Filter("file", "my file.ts"),)


@pytest.mark.parametrize(
    "query",
    [
        "-x",
        "error: x",
        "Error:x",
        "NOT",
        "word NOT",
        "notNOT x",
        "since:yesterday",
        "until:2026-13-01",
        "decision:false",
        "file:///home/dev/a.ts",
        "file:...",
        'an "unbalanced quote',
        '""',
        "a:b c:d",
        "http://localhost:3000",
    ],
)
def test_anything_else_is_text(query: str) -> None:
    found = parse(query)
    assert not found.operators
    assert found.terms == parse_text(query).terms


def test_the_words_of_a_phrase_are_terms_too() -> None:
    assert texts('"cloud sync" port') == ["cloud", "sync", "port"]


def test_length_is_bounded() -> None:
    many = " ".join(f"word{n}" for n in range(5000))
    assert len(parse(many).terms) <= TERM_LIMIT
    assert len(parse("x" * 100_000).text) == QUERY_LIMIT


operators = st.sampled_from(
    [
        "file:",
        "tool:",
        "since:2026-01-01",
        "NOT ",
        '"',
        "decision:true",
        " ",
        "端口",
        "agent:",
        "\\",
        "\x00",
        "'",
    ]
)


@given(st.lists(st.one_of(operators, st.text(max_size=8))).map("".join))
def test_no_string_raises(query: str) -> None:
    found = parse(query)
    assert all(term.tokens for term in found.terms)
    assert all(phrase.tokens for phrase in (*found.phrases, *found.excluded))
    assert not parse_text(query).operators
