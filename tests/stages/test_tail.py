"""stages/tail.py: chunks, bounds, and telling an append from a rewrite."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages import tail
from stages.model import Checkpoint, Chunk
from stages.tail import Verdict

SAMPLES = Path(__file__).parents[1] / "samples"
META = b'{"type":"metadata","protocol_version":"1.5","created_at":1796033702300}\n'


def line(text: str = "x", size: int = 0) -> bytes:
    body = b'{"type":"turn.prompt","text":"' + text.encode()
    return body + b"a" * max(0, size - len(body) - 3) + b'"}\n'


def drain(path: Path, mark: Checkpoint | None = None) -> tuple[list[Chunk], Checkpoint | None]:
    """All chunks, and the checkpoint after the last."""
    passed = list(tail.read(path, mark))
    return [chunk for chunk, _ in passed], passed[-1][1] if passed else mark


def data_of(chunks: list[Chunk]) -> bytes:
    return b"".join(chunk.data for chunk in chunks)


def mark_of(path: Path) -> Checkpoint:
    mark = drain(path)[1]
    assert mark is not None
    return mark


@pytest.fixture
def wire(tmp_path: Path) -> Path:
    path = tmp_path / "wire.jsonl"
    path.write_bytes(META + line("one") + line("two"))
    return path


@pytest.fixture
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds small enough to meet each of them with a few bytes."""
    for name, value in (
        ("CHUNK_BYTES", 100),
        ("LOOKAHEAD", 20),
        ("PARSE_LIMIT", 400),
        ("LINE_LIMIT", 1000),
        ("BLOCK", 16),
    ):
        monkeypatch.setattr(tail, name, value)


# --- chunks ------------------------------------------------------------------------------------------------


def test_whole_file_in_one_chunk(wire: Path) -> None:
    chunks, mark = drain(wire)
    assert data_of(chunks) == wire.read_bytes()
    assert [(chunk.start, chunk.end) for chunk in chunks] == [(0, wire.stat().st_size)]
    assert mark is not None
    assert (mark.offset, mark.size, mark.ino) == (chunks[0].end, chunks[0].end, wire.stat().st_ino)


def test_chunks_end_at_the_first_line_end_after_a_mebibyte(tmp_path: Path) -> None:
    path = tmp_path / "wire.jsonl"
    path.write_bytes(META + line(size=1000) * 3000)
    chunks, _ = drain(path)
    assert data_of(chunks) == path.read_bytes()
    assert all(chunk.data.endswith(b"\n") for chunk in chunks)
    assert all(tail.CHUNK_BYTES <= len(chunk.data) < tail.CHUNK_BYTES + 1000 for chunk in chunks[:-1])
    assert [chunk.start for chunk in chunks[1:]] == [chunk.end for chunk in chunks[:-1]]


def test_only_newline_splits(tmp_path: Path) -> None:
    path = tmp_path / "wire.jsonl"
    odd = '{"type":"turn.prompt","text":"a\u2028b\u2029c\u0085d\x0be\x1cf"}\r\n'.encode()
    path.write_bytes(odd + b"\n" + b'{"type":"torn \xe2\x80\xa8')
    assert data_of(drain(path)[0]) == odd + b"\n"


@pytest.mark.usefixtures("small_bounds")
def test_line_longer_than_a_chunk_is_a_chunk_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "wire.jsonl"
    parts = [line(size=40), line(size=300), line(size=40)]
    path.write_bytes(b"".join(parts))
    assert [chunk.data for chunk in drain(path)[0]] == parts


@pytest.mark.usefixtures("small_bounds")
def test_line_that_crosses_the_bound_but_is_no_longer_than_a_chunk_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "wire.jsonl"
    path.write_bytes(line(size=60) + line(size=100) + line(size=40))
    assert [len(chunk.data) for chunk in drain(path)[0]] == [160, 40]


def test_limit_stops_after_so_many_bytes_and_resumes(tmp_path: Path) -> None:
    path = tmp_path / "wire.jsonl"
    path.write_bytes(META + line(size=1000) * 4000)
    first = list(tail.read(path, None, limit=1))
    assert len(first) == 1
    assert tail.verdict(path, first[0][1]) is Verdict.APPEND
    rest, mark = drain(path, first[0][1])
    assert first[0][0].data + data_of(rest) == path.read_bytes()
    assert tail.verdict(path, mark) is Verdict.SAME
    assert list(tail.read(path, None, limit=0)) == []


def test_checkpoint_of_a_middle_chunk_is_never_taken_for_the_end(tmp_path: Path) -> None:
    """A kill after any committed chunk must lose nothing, also when the reader had seen the end."""
    path = tmp_path / "wire.jsonl"
    path.write_bytes(line(size=700_000) * 2 + line(size=50))
    marks = [mark for _, mark in tail.read(path)]
    assert [tail.verdict(path, mark) for mark in marks] == [Verdict.APPEND, Verdict.SAME]


# --- torn tails --------------------------------------------------------------------------------------------


def test_torn_last_line_waits_for_its_end(wire: Path) -> None:
    whole = wire.read_bytes()
    with wire.open("ab") as file:
        file.write(line("three")[:-1])
    chunks, mark = drain(wire)
    assert data_of(chunks) == whole
    assert tail.verdict(wire, mark) is Verdict.SAME
    with wire.open("ab") as file:
        file.write(b"\n")
    assert tail.verdict(wire, mark) is Verdict.APPEND
    assert data_of(drain(wire, mark)[0]) == line("three")


def test_torn_tail_that_came_later_is_looked_at_once(wire: Path) -> None:
    mark = mark_of(wire)
    with wire.open("ab") as file:
        file.write(b'{"type":"turn.pr')
    assert tail.verdict(wire, mark) is Verdict.APPEND
    chunks, mark_after = drain(wire, mark)
    assert [chunk.data for chunk in chunks] == [b""]
    assert mark_after is not None
    assert mark_after.offset == mark.offset
    assert tail.verdict(wire, mark_after) is Verdict.SAME
    assert list(tail.read(wire, mark_after)) == []


def test_nul_filled_tail_is_not_consumed(wire: Path) -> None:
    whole = wire.read_bytes()
    with wire.open("ab") as file:
        file.write(b"\0" * 5000)
    chunks, mark = drain(wire)
    assert data_of(chunks) == whole
    assert tail.verdict(wire, mark) is Verdict.SAME


def test_torn_tail_cut_off_by_a_repair_is_no_rewrite(wire: Path) -> None:
    """Same inode, shorter, but nothing that was consumed has changed."""
    size = wire.stat().st_size
    with wire.open("ab") as file:
        file.write(b'{"torn')
    mark = mark_of(wire)
    os.truncate(wire, size)
    assert tail.verdict(wire, mark) is Verdict.SAME


def test_empty_file_yields_nothing(tmp_path: Path) -> None:
    path = tmp_path / "wire.jsonl"
    path.touch()
    assert list(tail.read(path)) == []
    assert tail.verdict(path, None) is Verdict.NEW
    path.write_bytes(b'{"torn')
    assert list(tail.read(path)) == []


# --- long lines --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "reason"),
    [
        (b'{"type":"llm.tools_snapshot","agentId":"main","x":"', "noise"),
        (b'{"type":"token_counting.measured","x":"', "noise"),
        (b'{"message":{"message":{"role":"user"', "noise"),
        (b"\0\0\0\0", "corrupt-line"),
        (b"garbage ", "corrupt-line"),
        (b'{"type":"turn.prompt","x":"', ""),
        (b'{"type":"usage.record","x":"', ""),
        (b'{"timestamp": 1796034716.9, "message": {"type": "ToolResult"', ""),
    ],
)
@pytest.mark.usefixtures("small_bounds")
def test_line_over_the_parse_limit_is_classified_by_its_prefix(
    tmp_path: Path, start: bytes, reason: str
) -> None:
    path = tmp_path / "wire.jsonl"
    long = start + b"z" * 500 + b"\n"
    path.write_bytes(line("before") + long + line("after"))
    chunks, mark = drain(path)
    assert data_of(chunks) == line("before") + (b"" if reason else long) + line("after")
    assert chunks[-1].skipped == (((reason, 1),) if reason else ())
    assert chunks[-1].end == path.stat().st_size
    assert tail.verdict(path, mark) is Verdict.SAME


@pytest.mark.usefixtures("small_bounds")
def test_noise_below_the_parse_limit_is_left_to_the_splitter(tmp_path: Path) -> None:
    path = tmp_path / "wire.jsonl"
    path.write_bytes(b'{"type":"llm.tools_snapshot","x":"' + b"z" * 200 + b'"}\n')
    assert data_of(drain(path)[0]) == path.read_bytes()


@pytest.mark.usefixtures("small_bounds")
def test_line_over_the_line_limit_is_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "wire.jsonl"
    path.write_bytes(line(size=1001) * 2 + line(size=1000))
    chunks, _ = drain(path)
    assert [(chunk.data, chunk.skipped) for chunk in chunks] == [(line(size=1000), (("line-too-long", 2),))]


@pytest.mark.usefixtures("small_bounds")
def test_skipped_line_at_the_end_is_passed_with_an_empty_chunk(tmp_path: Path) -> None:
    path = tmp_path / "wire.jsonl"
    path.write_bytes(line() + line(size=2000))
    chunks, mark = drain(path)
    assert [(chunk.data, chunk.skipped) for chunk in chunks] == [
        (line(), ()),
        (b"", (("line-too-long", 1),)),
    ]
    assert mark is not None
    assert mark.offset == path.stat().st_size
    assert tail.verdict(path, mark) is Verdict.SAME


@pytest.mark.usefixtures("small_bounds")
def test_skipped_first_line_still_identifies_the_file(tmp_path: Path) -> None:
    path = tmp_path / "wire.jsonl"
    path.write_bytes(b"garbage" + b"z" * 500 + b"\n" + line("kept"))
    mark = mark_of(path)
    with path.open("ab") as file:
        file.write(line("more"))
    assert tail.verdict(path, mark) is Verdict.APPEND
    path.write_bytes(b"Garbage" + b"z" * 500 + b"\n" + line("kept") + line("more"))
    assert tail.verdict(path, mark) is Verdict.REWRITE


@pytest.mark.usefixtures("small_bounds")
def test_limit_counts_skipped_bytes(tmp_path: Path) -> None:
    path = tmp_path / "wire.jsonl"
    path.write_bytes(line(size=2000) + line("after"))
    [(chunk, mark)] = tail.read(path, None, limit=1)
    assert (chunk.data, chunk.skipped, mark.offset) == (b"", (("line-too-long", 1),), 2000)
    assert data_of(drain(path, mark)[0]) == line("after")


@pytest.mark.usefixtures("small_bounds")
def test_long_unfinished_line_is_searched_once(tmp_path: Path) -> None:
    path = tmp_path / "wire.jsonl"
    path.write_bytes(b"z" * 5000)
    [(chunk, mark)] = tail.read(path)
    assert (chunk.data, mark.offset, mark.size) == (b"", 0, 5000)
    assert tail.verdict(path, mark) is Verdict.SAME
    with path.open("ab") as file:
        file.write(b"z\n" + line("after"))
    assert data_of(drain(path, mark)[0]) == line("after")


def test_memory_stays_bounded_for_a_300_mb_line(tmp_path: Path) -> None:
    path = tmp_path / "wire.jsonl"
    with path.open("wb") as file:
        file.write(META)
        for _ in range(300):
            file.write(b"x" * (1 << 20))
        file.write(b"\n" + line("after"))
    program = (
        "import resource, sys\n"
        "from stages import tail\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "kept = [c for c, _ in tail.read(sys.argv[1])]\n"
        "grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before\n"
        "print(sum(len(c.data) for c in kept), dict(kept[-1].skipped), grown < 16 * 1024)\n"
    )
    pytest.importorskip("resource")
    run = [sys.executable, "-c", program, str(path)]
    done = subprocess.run(
        run, capture_output=True, text=True, encoding="utf-8", check=True, cwd=SAMPLES.parents[1]
    )
    assert done.stdout.strip() == f"{len(META) + len(line('after'))} {{'line-too-long': 1}} True"


# --- append or rewrite -------------------------------------------------------------------------------------


def test_same_costs_one_stat(wire: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = mark_of(wire)

    def refuse(*_: object) -> int:
        raise AssertionError("opened")

    monkeypatch.setattr(os, "open", refuse)
    assert tail.verdict(wire, mark) is Verdict.SAME


def test_touched_file_is_the_same(wire: Path) -> None:
    mark = mark_of(wire)
    os.utime(wire, ns=(1, 1))
    assert tail.verdict(wire, mark) is Verdict.SAME


def test_append(wire: Path) -> None:
    mark = mark_of(wire)
    with wire.open("ab") as file:
        file.write(line("three"))
    assert tail.verdict(wire, mark) is Verdict.APPEND
    assert data_of(drain(wire, mark)[0]) == line("three")


def rewrite(path: Path, data: bytes) -> None:
    """In place: the inode stays, the time moves on."""
    before = path.stat()
    with path.open("r+b") as file:
        file.write(data)
        file.truncate()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000))
    assert path.stat().st_ino == before.st_ino


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(
            META.replace(b"1.5", b"1.4") + line("one") + line("two") + line("3"), id="larger-new-head"
        ),
        pytest.param(META + line("one") + line("TWO") + line("three"), id="larger-new-tail-block"),
        pytest.param(META + line("one") + line("TWO"), id="same-size"),
        pytest.param(META + line("one"), id="shorter"),
        pytest.param(b"", id="truncated"),
    ],
)
def test_rewrite_in_place_is_seen(wire: Path, data: bytes) -> None:
    mark = mark_of(wire)
    rewrite(wire, data)
    assert tail.verdict(wire, mark) is Verdict.REWRITE
    with pytest.raises(tail.SourceRewritten, match=r"wire\.jsonl"):
        list(tail.read(wire, mark))


def test_rewrite_by_rename_is_seen_also_with_the_same_bytes(wire: Path) -> None:
    mark = mark_of(wire)
    fresh = wire.with_name("wire.jsonl.tmp.1.0")
    fresh.write_bytes(wire.read_bytes() + line("three"))
    fresh.rename(wire)
    assert tail.verdict(wire, mark) is Verdict.REWRITE


def test_device_number_alone_is_no_rewrite(wire: Path) -> None:
    from dataclasses import replace

    mark = replace(mark_of(wire), dev=987654)
    assert tail.verdict(wire, mark) is Verdict.SAME


def test_rewrite_while_reading_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "wire.jsonl"
    path.write_bytes(META + line("old", 1000) * 3000)
    reading = tail.read(path)
    next(reading)
    rewrite(path, META + line("new", 1000) * 4000)
    with pytest.raises(tail.SourceRewritten):
        list(reading)


def test_append_while_reading_is_read(tmp_path: Path) -> None:
    path = tmp_path / "wire.jsonl"
    path.write_bytes(META + line("old", 1000) * 3000)
    reading = tail.read(path)
    chunks = [next(reading)[0]]
    with path.open("ab") as file:
        file.write(line("new"))
    chunks += [chunk for chunk, _ in reading]
    assert data_of(chunks) == path.read_bytes()


# --- odd files ---------------------------------------------------------------------------------------------


def test_gone(wire: Path) -> None:
    mark = mark_of(wire)
    wire.unlink()
    assert tail.verdict(wire, mark) is Verdict.GONE
    with pytest.raises(tail.SourceGone) as caught:
        list(tail.read(wire, mark))
    assert caught.value.verdict is Verdict.GONE
    assert caught.value.path == wire


def test_errors_travel_from_worker_processes() -> None:
    for error in (tail.SourceRewritten("a"), tail.SourceUnreadable("b", "cannot be read: why")):
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy), copy.path) == (type(error), str(error), error.path)


def test_gone_between_stat_and_open(wire: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = mark_of(wire)
    os.utime(wire, ns=(1, 1))

    def vanish(*_: object) -> int:
        raise FileNotFoundError(2, "gone")

    monkeypatch.setattr(os, "open", vanish)
    assert tail.verdict(wire, mark) is Verdict.GONE
    with pytest.raises(tail.SourceGone):
        list(tail.read(wire, mark))


def odd_files(folder: Path) -> Iterator[Path]:
    directory = folder / "directory"
    directory.mkdir()
    yield directory
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "fifo")
        yield folder / "fifo"
        (folder / "link").symlink_to(folder / "fifo")
        yield folder / "link"
        (folder / "loop").symlink_to(folder / "loop")
        yield folder / "loop"


def test_odd_files_are_irregular_and_never_block(tmp_path: Path) -> None:
    for path in odd_files(tmp_path):
        assert tail.verdict(path, None) is Verdict.IRREGULAR
        with pytest.raises(tail.SourceIrregular):
            list(tail.read(path))


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="no Unix sockets here")
def test_socket_is_irregular(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="s") as folder, socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(folder)  # a socket's path has to be short
        server.bind("wire.jsonl")
        assert tail.verdict("wire.jsonl", None) is Verdict.IRREGULAR
        monkeypatch.undo()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_fifo_put_there_between_stat_and_open_does_not_block(
    wire: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    regular = wire.stat()
    wire.unlink()
    os.mkfifo(wire)
    monkeypatch.setattr(os, "stat", lambda *_: regular)
    with pytest.raises(tail.SourceIrregular):
        list(tail.read(wire))


def test_refused_permission_is_told(wire: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(tail.SourceUnreadable, match="Permission denied"):
        list(tail.read(wire))
    monkeypatch.setattr(os, "stat", refuse)
    assert tail.verdict(wire, None) is Verdict.UNREADABLE


def test_link_to_a_regular_file_is_read(wire: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.jsonl"
    link.symlink_to(wire)
    assert data_of(drain(link)[0]) == wire.read_bytes()


def test_descriptors_are_closed_also_after_an_abandoned_read(wire: Path) -> None:
    listing = Path("/proc/self/fd")
    if not listing.is_dir():
        pytest.skip("no /proc here")
    before = len(list(listing.iterdir()))
    for _ in range(20):
        reading = tail.read(wire)
        next(reading)
        reading.close()  # type: ignore[attr-defined]
    assert len(list(listing.iterdir())) == before


def test_head_gives_whole_lines_only(wire: Path) -> None:
    assert tail.head(wire, len(META) + 5) == META
    assert tail.peek(wire, 5) == META[:5]
    with pytest.raises(tail.SourceGone):
        tail.head(wire.with_name("absent"))


@pytest.mark.parametrize(
    "sample", sorted(SAMPLES.glob("*/home/sessions/**/wire.jsonl")), ids=lambda p: p.parts[-7]
)
def test_samples_are_read_whole(sample: Path) -> None:
    chunks, mark = drain(sample)
    assert data_of(chunks) == sample.read_bytes()
    assert tail.verdict(sample, mark) is Verdict.SAME


# --- any history -------------------------------------------------------------------------------------------

pieces = st.sampled_from(
    [
        b"a",
        b"\n",
        line("x"),
        line(size=130),
        line(size=350),
        b'{"type":"llm.request"' + b"z" * 500 + b"\n",
        line(size=1100),
        b"torn" * 40,
        b"\0" * 30,
    ]
)
appends = st.lists(st.tuples(pieces, st.booleans(), st.integers(1, 400)), max_size=25)


def kept(data: bytes) -> bytes:
    """What a reader must have been given of a file, by the plainest means."""
    whole = data[: data.rfind(b"\n") + 1]
    lines = whole.split(b"\n")[:-1]
    return b"".join(
        each + b"\n"
        for each in lines
        if len(each) < tail.PARSE_LIMIT or not tail._reason_to_skip(each, len(each) + 1)
    )


@pytest.mark.usefixtures("small_bounds")
@given(history=appends)
@settings(max_examples=150, deadline=None)
def test_any_appends_and_reads_give_exactly_the_bytes(history: list[tuple[bytes, bool, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wire.jsonl"
        path.touch()
        got = b""
        mark: Checkpoint | None = None
        for piece, reads, limit in history:
            with path.open("ab") as file:
                file.write(piece)
            if reads:
                for chunk, after in tail.read(path, mark, limit=limit):
                    got += chunk.data
                    mark = after
        chunks, mark = drain(path, mark)
        assert got + data_of(chunks) == kept(path.read_bytes())
        assert mark is None or tail.verdict(path, mark) is Verdict.SAME


@pytest.mark.usefixtures("small_bounds")
@given(
    before=st.lists(pieces, min_size=1, max_size=8),
    after=st.lists(pieces, max_size=8),
    spot=st.integers(1, 16),
)
@settings(max_examples=100, deadline=None)
def test_any_change_in_the_last_block_is_a_rewrite(
    before: list[bytes], after: list[bytes], spot: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wire.jsonl"
        path.write_bytes(b"".join(before) + b"\n")
        mark = mark_of(path)
        data = bytearray(path.read_bytes())
        data[max(0, mark.offset - spot)] ^= 1
        rewrite(path, bytes(data) + b"".join(after))
        assert tail.verdict(path, mark) is Verdict.REWRITE
