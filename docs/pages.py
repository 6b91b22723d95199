"""Run the code and the commands of the pages, and write what they print into them.

    python docs/pages.py [PAGE ...]

The tests run the pages, too, and compare: a number on a page is one that its code prints. Blocks whose title
is the name of a file are written to it, one after another; code and commands of the page find it there.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from typer.testing import CliRunner

from posse.cli import app

ROOT = Path(__file__).parent.parent
PYTHON = r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<printed>.*?)^```\n)?"
CONSOLE = r"^```console\n\$ posse (?P<command>(?:[^\n]*\\\n)*[^\n]*)\n(?P<answer>.*?)^```\n"
FILE = r"^```python title=\"(?P<file>\w+\.py)\"\n(?P<content>.*?)^```\n"
BLOCK = re.compile(f"{PYTHON}|{FILE}|{CONSOLE}", re.MULTILINE | re.DOTALL)
# The seconds in the last column of a table are those of one machine.
SECONDS = re.compile(r" +\d+\.\d\d (?=│$)", re.MULTILINE)
TERMINAL = {"COLUMNS": "80", "TERM": "dumb"}


@dataclass
class Outcome:
    """What a block of a page is said to print, and what it printed; and where that stands in the page."""

    line: int
    expected: str
    printed: str
    span: tuple[int, int]

    @property
    def agrees(self) -> bool:
        """Whether they are equal, but for the seconds that commands report."""
        blank = "#" * 4 + " "
        return SECONDS.sub(blank, self.expected) == SECONDS.sub(blank, self.printed)


@dataclass
class PageRun:
    """A page whose blocks share one namespace, from top to bottom."""

    page: Path
    namespace: dict[str, object] = field(default_factory=lambda: {"__name__": "page"})

    def outcomes(self) -> Iterator[Outcome]:
        """Run the blocks; yield those that say what they print."""
        with importing_from(Path.cwd()) as written:
            yield from self._outcomes(written)

    def _outcomes(self, written: list[Path]) -> Iterator[Outcome]:
        text = self.page.read_text(encoding="utf-8")
        for block in BLOCK.finditer(text):
            if block["file"] is not None:
                written.append(Path(block["file"]))
                with written[-1].open("a", encoding="utf-8") as file:
                    file.write(block["content"])
                continue
            group = "printed" if block["code"] is not None else "answer"
            if block["code"] is not None:
                line = text[: block.start("code")].count("\n")
                printed = self._run_python(block["code"], line)
            elif block["answer"] and not block["answer"].startswith("$ "):
                line = text[: block.start("command")].count("\n")
                printed = (run_process if written else run_command)(block["command"])
            else:
                continue
            if block[group] is not None:
                yield Outcome(line + 1, block[group], printed, block.span(group))

    def pictures(self) -> Iterator[tuple[Path, Path]]:
        """Return pictures that blocks drew in the current folder, each with that which pages show."""
        for shown in sorted((ROOT / "docs" / "assets").iterdir()):
            if (drawn := Path(shown.name)).exists():
                yield drawn, shown

    def _run_python(self, code: str, line: int) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + code, str(self.page), "exec", dont_inherit=True), self.namespace)
        return printed.getvalue()


@contextlib.contextmanager
def importing_from(folder: Path) -> Iterator[list[Path]]:
    """Let modules be found in a folder; forget in the end those whose files are in the list that it gives."""
    path, written = list(sys.path), list[Path]()
    sys.path.insert(0, str(folder))
    try:
        yield written
    finally:
        sys.path[:] = path
        for file in written:
            sys.modules.pop(file.stem, None)


def run_command(line: str) -> str:
    """Return what `posse` prints for a command line: the answer or, if it is refused, the error."""
    result = CliRunner().invoke(app, words_of(line), env=TERMINAL)
    return without_padding(result.stdout if result.exit_code == 0 else result.stderr)


def run_process(line: str) -> str:
    """Return what `posse` prints in a process of its own, which finds the modules of the current folder."""
    command = [sys.executable, "-P", "-c", "from posse.cli import main; main()", *words_of(line)]
    done = subprocess.run(
        command, env={**os.environ, **TERMINAL}, capture_output=True, text=True, check=False
    )
    return without_padding(done.stdout if done.returncode == 0 else done.stderr)


def words_of(line: str) -> list[str]:
    """Return the arguments of a command line, which may go on over several lines."""
    return shlex.split(line.replace("\\\n", " "))


def without_padding(text: str) -> str:
    """Return lines without spaces at their ends."""
    return "\n".join(row.rstrip() for row in text.splitlines()) + "\n"


def pages() -> list[Path]:
    """Return the README and all pages of the documentation."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def rewrite(page: Path) -> int:
    """Write what the blocks of a page print into it, and return how many were stale."""
    text, stale = page.read_text(encoding="utf-8"), 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        run = PageRun(page)
        outcomes = list(run.outcomes())
        for drawn, shown in run.pictures():
            shutil.copyfile(drawn, shown)
    for outcome in reversed(outcomes):
        if not outcome.agrees:
            start, end = outcome.span
            text, stale = text[:start] + outcome.printed + text[end:], stale + 1
    page.write_text(text, encoding="utf-8")
    return stale


if __name__ == "__main__":
    for name in sys.argv[1:] or pages():
        found = rewrite(Path(name).resolve())
        if found:
            print(f"{name}: {found} outputs rewritten")
