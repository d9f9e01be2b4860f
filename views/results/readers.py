"""What readers of published results learn about one device, where a survey has `central` (PROTOCOLS 11).

Results do not state it: it follows from numbers of answers that are published. So who reads results computes it, once.
"""

from collections.abc import Iterable, Mapping, Sequence

from protocols.privacy import CentralLoss, central_loss
from protocols.scheme import Scheme
from views.results.histogram import AttributeHistogram, Histogram


def readers_figure(scheme: Scheme, crowds: Mapping[str, Sequence[int]]) -> CentralLoss | None:
    """The figure of all results with these numbers of answers together; None for a survey without `central`.

    Give those of all that is published, or of the periods in which somebody took part.
    """
    promise = scheme.survey.central
    if promise is None:
        return None
    return central_loss(scheme.guarantees, crowds, delta=promise.delta)


def crowds_of(scheme: Scheme, histograms: Iterable[Histogram]) -> dict[str, list[int]]:
    """How many answers hide each other, by question, in each period from the first one on; 0: nothing is released."""
    noised = scheme.presence is not None
    known = {
        histogram.period: {attribute.name: _crowd(attribute, noised) for attribute in histogram.attributes}
        for histogram in histograms
    }
    periods = range(min(known, default=0), max(known, default=-1) + 1)
    return {
        question.name: [known.get(period, {}).get(question.name, 0) for period in periods]
        for question in scheme.questions
    }


def _crowd(attribute: AttributeHistogram, noised: bool) -> int:
    """With noise on counts, finals have the counts of every attribute. One that a histogram leaves out may be alone."""
    n = attribute.n or 0
    return max(n, 1) if noised else n
