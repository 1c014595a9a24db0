"""``score QUESTIONS.json REPLY.txt``: the scores of a reply, as the benchmark gives them."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from pytest_cellprose.questions.schema import QuestionFileError, load_questions
from pytest_cellprose.questions.scoring import score_reply
from pytest_cellprose.sets.split import always_held_out
from pytest_cellprose.workbook.model import Workbook, WorkbookError


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "score",
        help="score a model's reply to a question file",
        description='Print {"q1": 1.0, …}: the score of every question of QUESTIONS.json in the reply. If the '
        "workbook lies beside the question file, whole columns in answers are clipped to its used extent.",
    )
    parser.add_argument("questions", type=Path, metavar="QUESTIONS.json", help="a question file")
    parser.add_argument("reply", metavar="REPLY.txt", help="the reply's text; - for standard input")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    try:
        questions = load_questions(options.questions)
        reply = _reply(options.reply)
    except QuestionFileError as error:
        sealed = always_held_out(options.questions.stem)
        print("\n".join(error.lines(sealed=sealed)), file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{options.reply}: cannot be read: {error.strerror}", file=sys.stderr)
        return 2
    workbook = options.questions.parent / questions.workbook
    if workbook.is_file():
        try:
            sheets = Workbook.read(workbook).worksheets
        except WorkbookError as error:
            print(error, file=sys.stderr)
            return 2
        questions = questions.with_extents({sheet.name: sheet.extent for sheet in sheets})
    print(json.dumps(dict(score_reply(questions.questions, reply).scores)))
    return 0


def _reply(name: str) -> str:
    content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    return content.decode("utf-8", "replace")
