"""Search tokens: words, identifiers whole and in parts, pairs for scripts without spaces, one folding."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages import tokens
from stages.tokens import encode


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("listening listened listens", "listen listen listen"),
        ("listenPort", "listenport listen port"),
        ("listen_port", "listenport listen port"),
        ("--listen-port", "listenport listen port"),
        ("HTTPServer parses URLs", "httpserver http server pars url"),
        ("ERR_MODULE_NOT_FOUND", "errmodulenotfound err modul not found"),
        ("TS2345", "ts2345 ts 2345"),
        ("python3", "python3 python 3"),
        ("src/mcp/server.ts", "src/mcp/server.ts src mcp server.ts server ts"),
        ("C:\\work\\a.py", "c work/a.py work a.py a py"),
        ("v2.1.0", "v2.1.0 2.1.0 2.1"),
        ("127.0.0.1:3000", "127.0.0.1 127.0 3000"),
        ("C++ and c#", "c++ and c#"),
        ("don't touch the user’s file", "dont touch the user file"),
        ("tool#Bash", "tool#bash bash"),
        ("3.14 and 42", "3.14 and 42"),
        ("a3f9c2d1e4b7", "a3f9c2d1e4b7"),
        ("Straße café naïve", "strass cafe naiv"),
        ("привет, мир", "привет мир"),
        ("… — “” ！？", ""),
    ],
)
def test_words_and_identifiers(text: str, expected: str) -> None:
    assert encode(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("端口", "端口 口 端"),
        ("用Python写", "用 python 写 写 用"),
        ("啟動", "启动 动 启"),
        ("ＦＯＯ ｶﾞ", "foo ガ ガ"),
        ("한국어", "한국 국어 국 어 한"),
    ],
)
def test_scripts_without_spaces_give_pairs_and_then_the_single_characters(text: str, expected: str) -> None:
    assert encode(text) == expected


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("--only-cloud-sync", "only cloud sync"),
        ("--only-cloud-sync", "only_cloud_sync"),
        ("/home/dev/shop/src/mcp/server.ts", "src/mcp/server.ts"),
        ("/home/dev/shop/src/mcp/server.ts", "server.ts"),
        ("啟動時連接埠被佔用", "启动"),
        ("ＬｉｓｔｅｎＰｏｒｔ", "listenport"),
        ("OSError: [Errno 98] EADDRINUSE", "eaddrinuse"),
        ("release 2.1.0-rc.1", "2.1"),
    ],
)
def test_what_was_said_is_found_by_what_is_asked(said: str, asked: str) -> None:
    index = encode(said).split()
    assert set(tokens.tokens(asked)) & set(index)


def test_a_path_below_another_directory_keeps_its_token_sequence() -> None:
    whole = tokens.tokens("/home/dev/shop/src/mcp/server.ts")
    part = tokens.tokens("mcp/server.ts")[1:]
    assert any(whole[i : i + len(part)] == part for i in range(len(whole)))


def test_stop_words_are_tokens_of_the_tokenizer() -> None:
    assert {"the", "what", "什么", "怎么", "的"} <= tokens.STOP_WORDS
    assert not {"port", "端口", "delet"} & tokens.STOP_WORDS


def test_a_huge_unbroken_word_costs_a_bounded_number_of_tokens() -> None:
    assert len(encode("QUJD/REVG+" * 20_000).split()) <= tokens.PARTS_LIMIT


@given(st.text())
def test_any_text_gives_bounded_tokens_that_fts5_reads_back_exactly(text: str) -> None:
    encoded = encode(text)
    for token in encoded.split():
        assert 0 < len(token) <= tokens.TOKEN_LIMIT
        assert '"' not in token
    assert set(tokens.tokens(text)) <= set(encoded.split())
    connection = sqlite3.connect(":memory:")
    connection.execute(
        f"CREATE VIRTUAL TABLE t USING fts5(a, content='', tokenize=\"{tokens.FTS5_TOKENIZE}\")"
    )
    connection.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, instance)")
    connection.execute("INSERT INTO t(rowid, a) VALUES(1, ?)", (encoded,))
    stored = [row[0] for row in connection.execute("SELECT term FROM v ORDER BY offset")]
    connection.close()
    assert stored == encoded.split()


@given(st.text())
def test_folding_is_stable(text: str) -> None:
    assert encode(" ".join(tokens.tokens(text))) is not None
    assert len(tokens.simplify(text)) == len(text)


def test_the_cache_is_bounded_and_changes_nothing() -> None:
    first = encode("listenPort")
    for number in range(tokens.CACHE_LIMIT + 10):
        encode(f"w{number}")
    assert encode("listenPort") == first
    assert len(tokens._CACHE) <= tokens.CACHE_LIMIT


WORDS = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "a",
                "Foo",
                "ABs",
                "URLs",
                "listenPort",
                "1",
                "22",
                "v1",
                "1.2.3",
                "c++",
                "C#",
                "tool#",
                "'s",
                "src",
            ]
        ),
        st.text(alphabet="abABZ019_-./'+#\\", min_size=1, max_size=30),
        st.sampled_from([*"-./\\_'+#", "..", "aB1" * 9, "x." * 30]),
    ),
    min_size=1,
    max_size=8,
).map("".join)


@given(WORDS)
def test_the_short_way_to_the_tokens_of_an_ascii_word_gives_what_the_long_one_gives(word: str) -> None:
    assert tokens._plain(word) == " ".join(tokens._expand(word))
    assert encode(word) == " ".join(tokens._expand(word))


@given(st.text() | st.lists(st.text() | WORDS).map(" ".join))
def test_texts_in_which_only_ascii_makes_words_are_split_as_all_others(text: str) -> None:
    assert tokens._beyond_ascii(text) == {char for char in text if not char.isascii()}
    if tokens._SEPARATORS.fullmatch("".join(tokens._beyond_ascii(text))):
        assert tokens._ascii_words(text) == tokens._RAW.findall(text)
