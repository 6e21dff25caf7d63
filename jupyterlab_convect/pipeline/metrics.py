"""Which metrics a plan reports, as far as its sources say, and which tell the better run."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import Refused
from .files import FileCache
from .plan import Plan
from .problems import did_you_mean

_SMALLER = re.compile(
    r"loss|logloss|errors?|err|rmse|mse|mae|mape|smape|rmsle|msle|perplexity|ppl|wer|cer|nll|bpc"
    r"|deviance|regret|residual|crossentropy|divergence|kl|brier|fid"
)
_LARGER = re.compile(
    r"accuracy|acc|auc|auroc|auprc|f[12]|fbeta|score|precision|recall|r2|bleu|rouge|ndcg|mrr|iou"
    r"|dice|mcc|kappa|specificity|sensitivity|reward|correlation|likelihood"
)
_HELD_OUT = re.compile(r"(?:^|[_\W])(?:val|valid|validation|test|eval|holdout)(?:$|[_\W])", re.I)


@dataclass(frozen=True, slots=True)
class Reported:
    """The numbers that a plan may give."""

    metrics: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    """Values; those that are numbers count as metrics."""
    complete: bool = True
    """Nothing else can come."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.metrics, *self.outputs)))


def reported_by(plan: Plan, files: FileCache) -> Reported:
    """What the sources of a plan say that they report. Reads them."""
    metrics: dict[str, None] = {}
    outputs: dict[str, None] = {}
    complete = True
    for step in plan.steps:
        metrics |= dict.fromkeys(step.metrics)
        if step.path is None or step.kind not in ("notebook", "script"):
            complete = False
            continue
        found = files.reports(step.path)
        metrics |= dict.fromkeys(found.metrics)
        outputs |= dict.fromkeys(found.outputs or ())
        complete = complete and found.complete and found.outputs is not None
    return Reported(tuple(metrics), tuple(outputs), complete)


def larger_is_better(name: str) -> bool | None:
    """What the name of a metric says about it; None when that is not plain."""
    words = re.findall(r"[a-z]+\d?", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    if any(map(_SMALLER.fullmatch, words)):
        return False
    return True if any(map(_LARGER.fullmatch, words)) else None


def suggest(reported: Reported) -> str | None:
    """How to tell the best run, `max:accuracy`, where that is plain.

    The only metric that there is; else the only one whose name says whether it is to be
    large or small, or the only such one that was measured on data held out.
    """
    if len(reported.metrics) == 1:
        return _select(reported.metrics[0])
    for names in (reported.metrics, reported.outputs):
        plain = [name for name in names if larger_is_better(name) is not None]
        for few in (plain, [name for name in plain if _HELD_OUT.search(name)]):
            if len(few) == 1:
                return _select(few[0])
        if plain:
            return None
    return None


def require(metric: str, reported: Reported) -> None:
    """Refused when it is known that there will be no such metric."""
    if not reported.complete or metric in reported.names:
        return
    some = ", ".join(reported.names[:8]) + (", …" if len(reported.names) > 8 else "")
    raise Refused(
        f"There is no metric “{metric}”: what is reported is {some}."
        if some
        else f"There is no metric “{metric}”: nothing is reported.",
        code="no-such-metric",
        hint=did_you_mean(metric, reported.names)
        or f'Report it with jupyterlab_convect.metric("{metric}", …).',
    )


def _select(name: str) -> str:
    return f"{'min' if larger_is_better(name) is False else 'max'}:{name}"
