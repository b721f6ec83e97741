import pytest

from fl_saliency.atari_head.settings import (
    ALL_BASELINES,
    BenchmarkSettings,
    check_saliency,
    kind_of,
)
from fl_saliency.envs.protocol import resolve_protocol
from fl_saliency.errors import InputError
from fl_saliency.saliency.methods import method_names


def methods(*saliency: str, baselines: bool | None = None) -> tuple[str, ...]:
    protocol = resolve_protocol("BreakoutNoFrameskip-v4")
    return BenchmarkSettings(protocol=protocol, saliency=saliency, baselines=baselines).methods


def test_attention_alone_is_the_published_benchmark() -> None:
    settings = BenchmarkSettings(protocol=resolve_protocol("BreakoutNoFrameskip-v4"))
    assert settings.methods == ("attention",)
    assert settings.is_plain


def test_baselines_come_with_everything_but_attention_alone_unless_told_otherwise() -> None:
    assert methods("perturbation") == ("perturbation", *ALL_BASELINES)
    assert methods("attention", baselines=True) == ("attention", *ALL_BASELINES)
    assert methods("attention", "sarfa", baselines=False) == ("attention", "sarfa")


def test_a_baseline_that_is_asked_for_is_scored_once_and_where_it_was_asked_for() -> None:
    found = methods("human", "attention", "centre")
    assert found[:3] == ("human", "attention", "centre")
    assert sorted(found[3:]) == ["frame_difference", "mean_gaze", "random", "uniform"]


def test_every_method_is_of_one_kind() -> None:
    kinds = {name: kind_of(name) for name in (*method_names(), *ALL_BASELINES)}
    assert kinds["human"] == "bound"
    assert kinds["mean_gaze"] == kinds["centre"] == "baseline"
    assert kinds["attention"] == kinds["gradcam"] == "agent"


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ((), "no saliency method given; choose from: attention, "),
        (("perturbatoin",), "unknown saliency method 'perturbatoin'; did you mean 'perturbation'?"),
        (("mean_gase",), "did you mean 'mean_gaze'?"),
        (("sarfa", "rise", "sarfa"), "saliency method 'sarfa' is given twice"),
    ],
)
def test_wrong_methods_are_one_line(names: tuple[str, ...], said: str) -> None:
    with pytest.raises(InputError) as caught:
        check_saliency(names)
    assert said in str(caught.value)
