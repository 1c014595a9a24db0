"""`reader`, the offline model: a program that answers from the text that was sent, and from nothing else.

Not a language model. It decodes the workbook block of the prompt back into cells and looks the answers up, so its
accuracy is the ceiling that an encoding's text allows, and its token counts are exact.
"""

from __future__ import annotations

import json

from pytest_cellprose.encodings.base import Encoding
from pytest_cellprose.models.tokens import count
from pytest_cellprose.providers.base import Reply, Request
from pytest_cellprose.providers.reader_agent import explore
from pytest_cellprose.questions.answering import answer_all
from pytest_cellprose.questions.prompts import workbook_block
from pytest_cellprose.record.record import Usage
from pytest_cellprose.workbook.model import Workbook

READER_VERSION = "1"
"""Changes whenever any answer could change."""


class Reader:
    """The provider of the models `reader` and `reader_agent`."""

    def call(self, request: Request) -> Reply:
        """Answer `request.asked` from `request.prompt`, or explore with its tools as `reader_agent` does.

        Raises ValueError for an encoding without a decoder.
        """
        if request.tools:
            return explore(request)
        if request.encoding is None:
            raise ValueError("the reader needs to know the encoding of what it is to read")
        workbook = decoded(request.encoding, workbook_block(request.prompt))
        answers = answer_all(workbook, request.asked, request.encoding.keeps)
        text = json.dumps(answers, ensure_ascii=False)
        usage = Usage(input=count(request.system) + count(request.prompt), cached=0, output=count(text), reasoning=0)
        return Reply(text=text, returned_model=request.model_id, usage=usage)


def decoded(encoding: Encoding, block: str | None) -> Workbook:
    """The cells of a workbook block; without a block, no cells. Raises ValueError naming the encoding."""
    if block is None:
        return Workbook(worksheets=())
    if encoding.decode is None:
        raise ValueError(f"encoding {encoding.name!r} has no decoder: the reader cannot read it")
    return encoding.decode(block)
