"""How many values honest answers support: the law of their widths (docs/audit.md, section 9).

It does not depend on the shares of values for bit vectors, and hardly for hashes. So reports that were not made by the
survey's mechanism show in their widths, whatever people's values are.
"""

from __future__ import annotations

import numpy as np

from protocols.arrays.aliases import Floats
from protocols.mechanisms.encodings import bit_flip
from protocols.question import Question


def width_laws(question: Question) -> Floats:
    """The chances that an honest answer supports 0, 1 .. k values: the law of a survey is a mixture of the rows.

    One row where the law does not depend on the value; none where every answer supports one value, and for hashes that
    are new in every report: nearly all of them support the same number, whoever chose them.

    >>> from protocols.mechanisms.catalogue import RECORDS, build
    >>> from protocols.mechanisms.mechanism import Budget
    >>> from protocols.survey.attribute import Attribute
    >>> budget, three = Budget(1.0), Attribute(name="a", values=("x", "y", "z"))
    >>> width_laws(Question(three, build("oue", 3, budget), RECORDS["oue"], budget)).round(4).tolist()
    [[0.2672, 0.4638, 0.2328, 0.0362]]
    """
    encoding = question.mechanism.encoding
    if not encoding.widths:
        return np.zeros((0, question.k + 1))
    about_a_value = question.share if question.fake_kind == "zero" else 1.0
    return encoding.width_laws(bit_flip(question.mechanism.one_report), about_a_value)
