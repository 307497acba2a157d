"""Colours can be told apart from their background and from each other, on light and dark, by the colour-blind too."""

import itertools

import numpy as np
import pytest

from bufferscope.figures.style import DARK, LIGHT, Theme

THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])

# Machado, Oliveira and Fernandes (2009), "A physiologically-based model for simulation of color vision deficiency",
# severity 1.0, on linear RGB.
DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def linear(color: str) -> np.ndarray:
    """Linear RGB of `#rrggbb`."""
    channels = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(a: str, b: str) -> float:
    """WCAG 2.2 contrast ratio."""
    light, dark = sorted((float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (a, b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIE L*a*b* (D65) of linear RGB."""
    matrix = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    xyz = np.clip(np.array(matrix) @ np.clip(rgb, 0, 1) / [0.95047, 1, 1.08883], 0, None)
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@THEMES
def test_lines_stand_out_from_the_background(theme: Theme) -> None:
    for color in theme.palette:
        assert contrast(color, theme.background) >= 3, color


@THEMES
def test_text_is_readable(theme: Theme) -> None:
    assert contrast(theme.ink, theme.background) >= 7
    assert contrast(theme.muted, theme.background) >= 4.5


@THEMES
@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_the_first_four_colours_differ_for_everybody(theme: Theme, deficiency: str) -> None:
    # A CIE76 difference of 20 is several times what is just noticeable (2.3) and plainly seen in thin lines.
    seen = [lab(DEFICIENCIES[deficiency] @ linear(color)) for color in theme.palette[:4]]
    for a, b in itertools.combinations(range(4), 2):
        assert np.linalg.norm(seen[a] - seen[b]) >= 20, (theme.palette[a], theme.palette[b])


def test_both_palettes_have_a_colour_for_every_position() -> None:
    assert len(LIGHT.palette) == len(DARK.palette) >= 8
    assert len(set(LIGHT.palette)) == len(LIGHT.palette)


def mixed(ramp: tuple[str, ...]) -> list[str]:
    """The colours along a ramp, mixed as Vega does (linearly in RGB), from its first to its last."""
    stops = np.array([[int(color[i : i + 2], 16) for i in (1, 3, 5)] for color in ramp])
    along = [np.interp(np.linspace(0, len(ramp) - 1, 41), range(len(ramp)), channel) for channel in stops.T]
    return ["#" + "".join(f"{round(channel):02x}" for channel in color) for color in zip(*along, strict=True)]


def hue_and_chroma(color: str) -> tuple[float, float]:
    """Hue in degrees and chroma, both in CIE L*a*b*: orange is about 60 degrees, blue about 270."""
    _, a, b = lab(linear(color))
    return float(np.degrees(np.arctan2(b, a)) % 360), float(np.hypot(a, b))


@THEMES
def test_numbers_can_be_read_on_every_colour_of_a_cell(theme: Theme) -> None:
    for color in (*mixed(theme.worse), *mixed(theme.better), *mixed(theme.diverging)):
        assert contrast(theme.ink, color) >= 4.5, color


@THEMES
def test_more_is_more_orange_or_bluer_as_captions_say(theme: Theme) -> None:
    for ramp, hue in ((theme.worse, 60), (theme.better, 265)):
        chromas = [hue_and_chroma(color)[1] for color in mixed(ramp)]
        assert all(after > before - 0.5 for before, after in itertools.pairwise(chromas)), chromas
        assert chromas[-1] - chromas[0] > 25
        assert abs(hue_and_chroma(ramp[-1])[0] - hue) < 25


@THEMES
def test_less_than_half_is_orange_and_more_is_blue(theme: Theme) -> None:
    less, middle, more = (hue_and_chroma(color) for color in theme.diverging)
    assert abs(less[0] - 60) < 25
    assert abs(more[0] - 265) < 25
    assert middle[1] < 6


@THEMES
@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_little_and_much_and_good_and_bad_differ_for_everybody(theme: Theme, deficiency: str) -> None:
    def seen(color: str) -> np.ndarray:
        return lab(DEFICIENCIES[deficiency] @ linear(color))

    pairs = [(ramp[0], ramp[-1]) for ramp in (theme.worse, theme.better, theme.diverging)]
    for a, b in [*pairs, (theme.worse[-1], theme.better[-1])]:
        assert np.linalg.norm(seen(a) - seen(b)) >= 20, (a, b)
