"""``score QUESTIONS.json REPLY.txt``: the scores of a reply, as the benchmark gives them."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from pytest_cellprose.commands.heldout import add_flag, is_held_out_question_file, is_held_out_workbook, refusal
from pytest_cellprose.questions.schema import QuestionFileError, load_questions
from pytest_cellprose.questions.scoring import score_reply
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
    add_flag(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    path: Path = options.questions
    try:
        questions = load_questions(path)
    except QuestionFileError as error:
        print("\n".join(error.lines(sealed=is_held_out_question_file(path, None))), file=sys.stderr)
        return 2
    held_out = is_held_out_question_file(path, questions)
    workbook = path.parent / questions.workbook
    if workbook.is_file() and (options.held_out or not held_out):
        try:
            read = Workbook.read(workbook)
        except WorkbookError as error:
            print(error, file=sys.stderr)
            return 2
        held_out = held_out or is_held_out_workbook(read, workbook)
        questions = questions.with_extents({sheet.name: sheet.extent for sheet in read.worksheets})
    if held_out and not options.held_out:
        print(refusal(path), file=sys.stderr)
        return 2
    try:
        reply = _reply(options.reply)
    except OSError as error:
        print(f"{options.reply}: cannot be read: {error.strerror}", file=sys.stderr)
        return 2
    print(json.dumps(dict(score_reply(questions.questions, reply).scores)))
    return 0


def _reply(name: str) -> str:
    content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    return content.decode("utf-8", "replace")
