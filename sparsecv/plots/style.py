"""The one style of all pictures and pages: colours, and what matplotlib is told."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from ..errors import InputError, not_installed

# The colours of Okabe and Ito (2008), which people with the common forms of colour blindness tell
# apart. Each has a contrast of at least 3 to the light and to the dark ground of a page.
BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#B5679A"
GREY = "#767676"
# What matplotlib is told for every picture: its own names and units. The values are a choice.
STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "grid.color": "#D9D9D9",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "font.size": 10,
}
Function = TypeVar("Function", bound=Callable[..., Any])


def matplotlib() -> Any:
    """The package matplotlib; InputError where it is not installed."""
    try:
        import matplotlib
    except ImportError:
        raise InputError(f"no pictures, as {not_installed('matplotlib', 'plot')}") from None
    return matplotlib


def new_figure(rows: int = 1, columns: int = 1, **options: Any) -> tuple[Any, Any]:
    """A figure for a file, which pyplot does not know, and its axes, shape (rows, columns).

    options: Those of matplotlib's ``Figure.subplots``, and ``figsize``, in inches.
    """
    matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=options.pop("figsize"), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def in_style(function: Function) -> Function:
    """Let a function that draws a picture draw it in this style, whatever the user's own is."""

    @wraps(function)
    def drawn(*args: Any, **options: Any) -> Any:
        with matplotlib().rc_context(cast(Any, STYLE)):
            return function(*args, **options)

    return cast(Function, drawn)


@in_style
def page_picture(description: str, draw: Callable[..., None], *shown: Any) -> tuple[Any, str]:
    """A figure for a page, and its description.

    draw: Takes the axes of the figure and what is shown, and draws it.
    """
    figure, ((axes,),) = new_figure(figsize=(5.6, 3.6))
    draw(axes, *shown)
    return figure, description
