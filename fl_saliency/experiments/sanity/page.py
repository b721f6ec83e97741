"""sanity.html: the report as one page that needs no network, no script and no other file."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from fl_saliency.experiments.sanity import BASELINES
from fl_saliency.experiments.sanity.cautions import CAVEATS
from fl_saliency.experiments.sanity.checks import Findings
from fl_saliency.experiments.sanity.randomisation import Kind
from fl_saliency.experiments.sanity.similarity import SIMILARITIES
from fl_saliency.experiments.sanity.verdicts import CHECKS, RULES, Verdict, verdicts

__all__ = ["PICTURES", "Picture", "sanity_page"]


@dataclass(frozen=True, kw_only=True)
class Picture:
    """One of the page's plots."""

    file: str
    heading: str
    alt: str
    """What it shows, for those who cannot see it; the tables hold its figures."""
    text: str
    """How to read it."""


PICTURES = (
    Picture(
        file="examples.png",
        heading="What it looks like",
        alt="Each method's map of one state, for the trained network and after each stage of the "
        "cascading randomisation.",
        text="The trained network's map is on the left; to the right, one more layer after the "
        "other has forgotten what it learned. A row that stays as it is shows the picture or the "
        "architecture, not what the agent learned. Each map is drawn to its own largest value.",
    ),
    Picture(
        file="randomisation.png",
        heading="Parameter randomisation",
        alt="Similarity between the trained network's maps and those with layers re-drawn, for "
        "each method, by Spearman correlation (also where not both are 0), SSIM and HOG.",
        text="Lines should fall. 1 means that the map did not change at all when those layers lost "
        "what they had learned. The baselines know nothing of the network and stay at 1. Methods "
        "that are 0 on black pixels, whatever the network, look alike for that alone: the second "
        "column leaves those pixels out. Below: each layer re-drawn alone; a method at 1 does not "
        "use that layer.",
    ),
    Picture(
        file="insertion_deletion.png",
        heading="Insertion and deletion",
        alt="What becomes of the chosen action's logit and probability as pixels are blurred, or "
        "put in, in the order of each method's map.",
        text="Deletion blurs the highest pixels first: a good order makes the curve fall at once. "
        "Insertion puts them into the blurred picture first: a good order makes it rise at once. "
        "On the right, each method's gain over a random order.",
    ),
    Picture(
        file="zeroing.png",
        heading="High against low",
        alt="Change of the chosen action's logit and of the policy when the highest, the lowest or "
        "a random tenth of each map is taken away.",
        text="Orange should lie to the right of blue and grey: what a map ranks highest should "
        "matter more than what it ranks lowest, and more than a tenth at random.",
    ),
    Picture(
        file="agreement.png",
        heading="Agreement",
        alt="Matrix of the mean Spearman correlations between the methods' maps.",
        text="Methods that answer the same question should agree more with each other than with "
        "the baselines. Agreement is no proof: methods can share an error, and built-in attention "
        "and gradients ask different questions. Ranks go by the mean with the other methods.",
    ),
)

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; margin: 0 auto;
  max-width: 72rem; padding: 1.5rem; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; } h2 { font-size: 1.25rem; margin: 2.2rem 0 .4rem; }
p, li { max-width: 50rem; } img { max-width: 100%; height: auto; border: 1px solid #ddd; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; margin: .6rem 0; }
th, td { border: 1px solid #ccc; padding: .3rem .6rem; text-align: left; vertical-align: top; }
th { background: #f3f3f3; } td small { display: block; color: #444; }
.passes { background: #d5efe6; } .fails { background: #f8dccb; } .undecided { background: #ececec; }
.caution { border-left: .4rem solid #D55E00; background: #fdf1ea; padding: .6rem 1rem; }
figure { margin: 0 0 .5rem; } figcaption { max-width: 50rem; margin-bottom: .6rem; }
details { margin: .6rem 0; } summary { cursor: pointer; }
"""
_SIGNS = {"passes": "✓ passes", "fails": "✗ fails", "undecided": "? undecided"}


def sanity_page(
    findings: Findings,
    pictures: Mapping[str, bytes],
    provenance: Mapping[str, Any],
    cautions: Sequence[str],
) -> str:
    """The page, with the PNGs in `pictures` (by file name) inside it.

    Every name from outside is escaped.
    """
    title = f"Sanity checks of saliency: {provenance['env_name']}, {provenance['network']}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(_subtitle(findings, provenance))}</p>",
        _cautions(cautions),
        "<h2>Verdicts</h2>",
        _verdict_table(findings),
        _rules(),
        *(_figure(picture, pictures[picture.file], findings) for picture in PICTURES),
        "<h2>Before you believe it</h2>",
        _caveats(),
        "<h2>What was checked</h2>",
        _table([], [[key, _text(value)] for key, value in provenance.items()]),
    ]
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def _subtitle(findings: Findings, provenance: Mapping[str, Any]) -> str:
    steps = provenance.get("num_timesteps")
    trained = f"trained for {steps} decisions, " if steps is not None else ""
    return (
        f"{trained}training seed {_text(provenance.get('train_seed'))}; {findings.states} states "
        f"of {provenance['games']} games; the maps explain the logit of the action that the agent "
        "chose. Figures are means over states with 95 % bootstrap intervals."
    )


def _cautions(cautions: Sequence[str]) -> str:
    if not cautions:
        return ""
    items = "".join(f"<li>{escape(text)}</li>" for text in cautions)
    return f'<div class="caution"><strong>Caution</strong><ul>{items}</ul></div>'


def _verdict_table(findings: Findings) -> str:
    found = {(one.check, one.method): one for one in verdicts(findings)}
    checks = [check for check in CHECKS if any(key[0] == check for key in found)]
    head = "".join(f"<th>{escape(name)}</th>" for name in ("method", *checks))
    rows = []
    for name in findings.names:
        label = f"{name} (baseline)" if name in BASELINES else name
        cells = "".join(_verdict(found.get((check, name))) for check in checks)
        rows.append(f"<tr><th>{escape(label)}</th>{cells}</tr>")
    body = "\n".join(rows)
    return f'<div class="scroll"><table><tr>{head}</tr>\n{body}</table></div>'


def _verdict(found: Verdict | None) -> str:
    if found is None:
        return "<td>–</td>"
    lines = "".join(f"<small>{escape(line)}</small>" for line in found.because.split("; "))
    return f'<td class="{found.outcome}">{_SIGNS[found.outcome]}{lines}</td>'


def _rules() -> str:
    items = "".join(
        f"<li><strong>{escape(name)}</strong>: {escape(rule)}.</li>" for name, rule in RULES.items()
    )
    return (
        "<p>The baselines are there to fail: they know nothing of the network.</p>"
        f"<details open><summary>The rules</summary><ul>{items}</ul><p>Undecided: the interval "
        "holds the threshold, or the figure is undefined in more than half of the states (a "
        "constant map has no ranks).</p></details>"
    )


def _figure(picture: Picture, png: bytes, findings: Findings) -> str:
    data = base64.b64encode(png).decode("ascii")
    return (
        f"<h2>{escape(picture.heading)}</h2>\n<figure><figcaption>{escape(picture.text)}"
        f'</figcaption><img src="data:image/png;base64,{data}" alt="{escape(picture.alt)}">'
        f"</figure>{_TABLES.get(picture.file, lambda found: '')(findings)}"
    )


def _caveats() -> str:
    items = "".join(
        f'<li>{escape(one.text)} <a href="{escape(one.url)}">{escape(one.source)}</a></li>'
        for one in CAVEATS
    )
    return f"<ul>{items}</ul>"


# --- tables ---


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows whose first cell is a heading."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    lines = [f"<tr>{top}</tr>"] if head else []
    for first, *rest in rows:
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in rest)
        lines.append(f"<tr><th>{escape(first)}</th>{cells}</tr>")
    return f'<div class="scroll"><table>{"".join(lines)}</table></div>'


def _folded(summary: str, table: str) -> str:
    return f"<details><summary>{escape(summary)}</summary>{table}</details>"


def _randomisation_tables(findings: Findings) -> str:
    kinds: tuple[Kind, Kind] = ("cascading", "independent")
    return "".join(
        _folded(
            f"Table: {kind}, {measure.replace('_', ', ')}",
            _randomisation_table(findings, kind, measure),
        )
        for kind in kinds
        for measure in SIMILARITIES
    )


def _randomisation_table(findings: Findings, kind: Kind, measure: str) -> str:
    chosen = [found for found in findings.stages if found.stage.kind == kind]
    rows = [
        [name, *(_counted(found.methods[name][measure]) for found in chosen)]
        for name in findings.names
    ]
    return _table(["method", *(found.stage.layer for found in chosen)], rows)


def _counted(found: Any) -> str:
    return f"{found}" + (f" ({found.undefined} undefined)" if found.undefined else "")


def _curve_table(findings: Findings) -> str:
    head = ["method", "curve", "area", "gain over random", "gain over centre"]
    rows = [
        [method, name.replace("_", ", "), str(one.area), str(one.over_random), str(one.over_centre)]
        for name, found in findings.curves.items()
        for method, one in found.items()
    ]
    return _folded("Table: areas under the curves", _table(head, rows))


def _parts_table(findings: Findings) -> str:
    head = [
        *("method", "effect", "highest", "lowest", "random"),
        *("highest less lowest", "highest less random", "highest over lowest"),
    ]
    rows = [
        [method, effect, *map(str, (p.high, p.low, p.random, p.over_low, p.over_random, p.ratio))]
        for effect, found in findings.parts.items()
        for method, p in found.items()
    ]
    return _folded("Table: parts", _table(head, rows))


_TABLES = {
    "randomisation.png": _randomisation_tables,
    "insertion_deletion.png": _curve_table,
    "zeroing.png": _parts_table,
}


def _text(value: Any) -> str:
    """A value of the provenance, for people."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_text(item)}" for key, item in value.items())
    return "not known" if value is None else str(value)
