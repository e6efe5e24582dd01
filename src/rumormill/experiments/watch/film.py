"""Rumours as they spread, as a film for slides: GIF, or MP4 where ffmpeg is found."""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rumormill.engine.trace import Bundle, Trace
from rumormill.errors import InputError
from rumormill.experiments.watch.cases import Play, Watched
from rumormill.files import read_bytes, write_atomically
from rumormill.plotting.rendering import made_folder
from rumormill.plotting.style import (
    GREY,
    arm_colours,
    dot,
    ink_on,
    legend_below,
    looks,
    new_figure,
    plain_ticks,
    style,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

State = Literal["on time", "late", "lost"]
HALF = 0.5


@dataclass(frozen=True)
class Seen:
    """A bundle in a moment of a round."""

    bundle: Bundle
    along: float
    """How far it is, from 0 to 1."""
    state: State


def by_round(record: Trace) -> dict[int, list[Bundle]]:
    """All bundles to be seen in every round: those sent then, and those still under way."""
    found: dict[int, list[Bundle]] = defaultdict(list)
    for bundle in record.bundles:
        for t in range(bundle.sent, min(bundle.arrived or bundle.sent, record.rounds) + 1):
            found[t].append(bundle)
    return found


def seen_at(bundle: Bundle, t: int, part: float) -> Seen:
    """How far a bundle is when so much of round t has passed."""
    if bundle.fate == "down":
        return Seen(bundle, 0.15, "lost")
    rounds = 1 if bundle.arrived is None else bundle.arrived - bundle.sent + 1
    along = (t - bundle.sent + part) / rounds
    if bundle.fate == "lost":
        return Seen(bundle, min(along, HALF), "lost" if along >= HALF else "on time")
    if bundle.fate == "away" and bundle.arrived == t and part >= HALF:
        return Seen(bundle, along, "lost")
    return Seen(bundle, along, "late" if rounds > 1 else "on time")


def spots(seen: list[Seen], places: NDArray[np.float64], margin: float, side: float) -> NDArray[np.float64]:
    """(bundles, 2): where they are; each direction of a link keeps to its own side.

    `margin` is the radius of an agent, `side` the distance from the middle of the link.
    """
    if not seen:
        return np.empty((0, 2))
    start = places[[each.bundle.sender for each in seen]]
    way = places[[each.bundle.receiver for each in seen]] - start
    far = np.maximum(np.hypot(*way.T), 1e-9)[:, None]
    skip = np.minimum(0.45, margin / far)
    along = skip + np.array([each.along for each in seen])[:, None] * (1 - 2 * skip)
    spot: NDArray[np.float64] = start + along * way + side * np.column_stack([way[:, 1], -way[:, 0]]) / far
    return spot


# Pictures for every round, and how long a round takes.
STEPS = 3
ROUND_S = 0.75
SIZE_INCHES, DPI = (6.4, 6.6), 110
INK, LOST, AWAY = "#1d1d1f", "#b22222", "#8a8d91"
KINDS = (".gif", ".mp4")


def refuse_unwritable(path: Path) -> None:
    """An error where this machine cannot write such a film."""
    if path.suffix == ".mp4" and shutil.which("ffmpeg") is None:
        raise InputError(
            f"{path} needs ffmpeg, which is not installed: install it, or write a .gif or .html file"
        )


def write_film(watched: Watched, path: Path, on_frame: Callable[[], None] = lambda: None) -> Path:
    """Write the film of the first policy, as the ending of the name says; all of it or nothing."""
    refuse_unwritable(path)
    made_folder(path.parent)
    with tempfile.TemporaryDirectory(prefix="rumormill-") as folder, style():
        draft = Path(folder) / path.name
        write = _write_gif if path.suffix == ".gif" else _write_mp4
        write(_Film(watched), draft, on_frame)
        write_atomically(path, read_bytes(draft))
    return path


def n_frames(watched: Watched) -> int:
    return watched.rounds * STEPS


def _write_gif(film: _Film, path: Path, on_frame: Callable[[], None]) -> None:
    from PIL import Image

    # One palette for all pictures: colours do not flicker, and white is white.
    palette = Image.new("P", (1, 1))
    palette.putpalette(_palette(film.colours))

    def pictures() -> Iterator[Any]:
        for t, part in film.moments():
            frame = Image.fromarray(film.pixels(t, part))
            on_frame()
            yield frame.quantize(palette=palette, dither=Image.Dither.NONE)

    frames = pictures()
    next(frames).save(
        path,
        save_all=True,
        append_images=frames,
        duration=round(1000 * ROUND_S / STEPS),
        loop=0,
        optimize=False,
    )


def _palette(colours: Sequence[str]) -> list[int]:
    """Red, green and blue of 256 colours: each of these, and its way to white, for the edges of shapes."""
    base = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in dict.fromkeys(colours)])
    levels = np.linspace(0, 0.9, 255 // len(base))  # nearer to white it would be taken for white
    mixed = np.concatenate([base + level * (255 - base) for level in levels])
    found = np.full((256, 3), 255.0)
    found[: len(mixed)] = mixed
    values: list[int] = np.round(found).astype(int).ravel().tolist()
    return values


def _write_mp4(film: _Film, path: Path, on_frame: Callable[[], None]) -> None:
    from matplotlib.animation import FFMpegWriter

    writer = FFMpegWriter(fps=round(STEPS / ROUND_S))
    with writer.saving(film.figure, str(path), DPI):
        for t, part in film.moments():
            film.draw(t, part)
            writer.grab_frame()
            on_frame()


class _Film:
    """One figure, changed from moment to moment."""

    def __init__(self, watched: Watched) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        self._watched, self._play = watched, watched.plays[0]
        self._record = self._play.record
        self._bundles = by_round(self._record)
        self._colours = arm_colours(watched.gaps)
        self.rounds = watched.rounds
        self.figure = new_figure(*SIZE_INCHES)
        self.figure.set_dpi(DPI)
        self._net, self._regret = self.figure.subplots(2, 1, height_ratios=[3.3, 1])
        self._lay_out_network()
        self._lay_out_regret()
        _key(self.figure, watched, self._play, self._colours)
        self._canvas = FigureCanvasAgg(self.figure)
        self.draw(1, HALF)
        self._canvas.draw()
        self.figure.set_layout_engine("none")  # from here on nothing but these moves
        self._changing = [
            *((self._net, artist) for artist in (*self._moving.values(), self._agents, *self._numbers)),
            *((self._regret, curve) for curve, _ in self._curves),
            (self._regret, self._cursor),
            (self._net, self._net.title),
        ]
        for _, artist in self._changing:
            artist.set_animated(True)
        self._canvas.draw()
        self._background = self._canvas.copy_from_bbox(self.figure.bbox)

    @property
    def colours(self) -> list[str]:
        """All colours in it."""
        curves = [mark.colour for mark in looks(play.label for play in self._watched.plays).values()]
        return [INK, *self._colours, *curves, LOST, AWAY, GREY]

    def moments(self) -> Iterator[tuple[int, float]]:
        """Every picture: the round, and how much of it has passed."""
        return ((t, (step + 0.5) / STEPS) for t in range(1, self.rounds + 1) for step in range(STEPS))

    def pixels(self, t: int, part: float) -> Any:
        """The picture as an array of red, green and blue."""
        self.draw(t, part)
        self._canvas.restore_region(self._background)
        for axes, artist in self._changing:
            axes.draw_artist(artist)
        return np.asarray(self._canvas.buffer_rgba())[:, :, :3].copy()

    def _lay_out_network(self) -> None:
        from matplotlib.collections import LineCollection

        watched, axes = self._watched, self._net
        n_agents, edges = watched.network.n_agents, watched.network.edges()
        # In points, so that a circle is a circle.
        wide, high = 440.0, 290.0
        self._places = watched.places * (wide, high)
        self._radius = float(np.clip(0.085 * np.sqrt(wide * high / n_agents), 3.5, 9))
        axes.set(xlim=(-14, wide + 14), ylim=(-14, high + 14))
        axes.set_axis_off()
        strength = float(np.clip(60 / max(len(edges), 1), 0.12, 0.7))
        links = LineCollection(list(self._places[edges]), colors=GREY, linewidths=0.7, alpha=strength)
        axes.add_collection(links)
        self._moving = {
            "on time": axes.scatter([], [], zorder=2),
            "late": axes.scatter([], [], zorder=2, facecolors="white"),
            "lost": axes.scatter([], [], zorder=3, marker="x", color=LOST, linewidths=1.2),
        }
        size = (2 * self._radius) ** 2
        self._agents = axes.scatter(*self._places.T, s=size, zorder=4)
        numbered = self._radius > 4
        self._numbers = [
            axes.text(x, y, "", ha="center", va="center_baseline", fontsize=1.1 * self._radius, zorder=5)
            for x, y in (self._places if numbered else ())
        ]

    def _lay_out_regret(self) -> None:
        from matplotlib.ticker import MaxNLocator

        watched, axes = self._watched, self._regret
        rounds = np.arange(1, self.rounds + 1)
        look = looks([play.label for play in watched.plays])
        self._curves = []
        for play in watched.plays:
            mark, regret = look[play.label], play.record.regret
            axes.plot(rounds, regret, color=mark.colour, linestyle=mark.line, alpha=0.15)
            (curve,) = axes.plot([], [], color=mark.colour, linestyle=mark.line)
            self._curves.append((curve, regret))
        self._cursor = axes.axvline(1, color=INK, linewidth=0.8)
        axes.set(xlim=(0, self.rounds + 0.5), xlabel="round", ylabel="group regret")
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        plain_ticks(axes)

    def draw(self, t: int, part: float) -> None:
        """Change the figure to this moment."""
        self._net.set_title(_headline(self._watched, self._play, t))
        self._draw_agents(t)
        self._draw_bundles(t, part)
        for curve, regret in self._curves:
            curve.set_data(np.arange(1, t + 1), regret[:t])
        self._cursor.set_xdata([t, t])

    def _draw_agents(self, t: int) -> None:
        seen = self._record
        arms, best, up = seen.actions[t - 1], seen.best[t - 1], seen.up[t - 1]
        colours = [self._colours[arm] if arm >= 0 else INK for arm in arms]
        faces = [colour if here else "white" for colour, here in zip(colours, up, strict=True)]
        edges = [
            (INK if arm == good else "white") if here else AWAY
            for arm, good, here in zip(arms, best, up, strict=True)
        ]
        self._agents.set_facecolors(faces)
        self._agents.set_edgecolors(edges)
        self._agents.set_linewidths([1.6 if edge == INK else 0.8 for edge in edges])
        for v, text in enumerate(self._numbers):
            text.set_text("" if not up[v] else str(arms[v]) if arms[v] >= 0 else "!")
            text.set_color(ink_on(faces[v]) if up[v] and arms[v] >= 0 else "#ffffff")

    def _draw_bundles(self, t: int, part: float) -> None:
        seen = [seen_at(bundle, t, part) for bundle in self._bundles.get(t, [])]
        for state, artist in self._moving.items():
            # A cross on a bundle that comes, but not whole.
            some = [
                each
                for each in seen
                if each.state == state
                or (state == "lost" and each.bundle.fate == "arrived" and each.bundle.missing)
            ]
            artist.set_offsets(spots(some, self._places, self._radius, 2.5))
            artist.set_sizes([9.0 + 3 * np.log2(len(each.bundle.messages)) for each in some])
            if state == "lost":
                continue
            arms = [self._record.actions[each.bundle.sent - 1, each.bundle.sender] for each in some]
            colours = [self._colours[arm] if arm >= 0 else INK for arm in arms]
            if state == "late":
                artist.set_edgecolors(colours)
                artist.set_linewidths(1.2)
            else:
                artist.set_facecolors(colours)
                artist.set_linewidths(0)


def _headline(watched: Watched, play: Play, t: int) -> str:
    name = play.label if play.gamma is None else f"{play.label}, γ = {play.gamma}"
    place = f" ({watched.where})" if watched.where else ""
    return f"{name}{place}: round {t} of {watched.rounds}"


def _key(figure: Figure, watched: Watched, play: Play, colours: list[str]) -> None:
    from matplotlib.lines import Line2D

    seen = play.record
    best = int(seen.best[0, 0]) if (seen.best == seen.best[0, 0]).all() else None
    handles = [
        dot(f"arm {k}, mean {mean:.3g}{', the best' if k == best else ''}", color=colours[k])
        for k, mean in enumerate(watched.means)
    ]
    ring: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": INK}
    handles += [dot("pulls its best arm", markeredgewidth=1.6, **ring), dot("messages", size=3.5, color=INK)]
    if any(each.arrived is not None and each.arrived > each.sent for each in seen.bundles):
        handles.append(dot("late", size=3.5, markeredgewidth=1.2, **ring))
    if any(each.fate != "arrived" or each.missing for each in seen.bundles):
        handles.append(dot("lost", "x", 4.5, color=LOST))
    if not seen.up.all():
        handles.append(dot("away", markerfacecolor="none", markeredgecolor=AWAY))
    if seen.lies.any():
        handles.append(dot("lies", marker="$!$", color=INK))
    look = looks([each.label for each in watched.plays])
    lines = [
        Line2D([], [], color=mark.colour, linestyle=mark.line, label=name) for name, mark in look.items()
    ]
    legend_below(figure, {str(handle.get_label()): handle for handle in [*handles, *lines]})
