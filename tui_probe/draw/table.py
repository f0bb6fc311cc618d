    columns: Sequence[Column[Row]], rows: Iterable[Row], cells: int, *, hide_empty: bool = False
) -> Iterator[str]:
    """Lines of at most ``cells`` cells: headings, a rule, and one line per row.

    Columns without any value are left out where the table does not fit, and always with ``hide_empty``. Then columns
    are left out by rank, and those that may be cut share what room there is; at last other texts are cut, but never
    numbers. Many ``rows`` are gone through twice, for the widths and for the lines, and not held.
    """
    shown = in_tables(columns)
    natural: Sequence[int] = [0] * len(shown)
    held: list[list[str]] = []
    count = 0
    for count, texts in enumerate(_texts(shown, rows), 1):
        natural = list(map(max, natural, map(_width_of_value, texts)))
        if count <= _CACHE_SIZE:
            held.append(texts)
    natural = _with_empty_columns(shown, with_titles(shown, natural), cells, hide_empty=hide_empty)
    fitting = _fitting_columns(shown, natural, cells)
    widths = _widths(shown, natural, fitting, cells)
    yield _line([pad(shown[i].title, widths[i], right=shown[i].right) for i in fitting], cells)
    yield _line(["─" * widths[i] for i in fitting], cells)
    for texts in held if count <= _CACHE_SIZE else _texts(shown, rows):
        yield _line([_fitted(shown[i], texts[i], widths[i]) for i in fitting], cells)


def shown_keys(columns: Sequence[Column[Row]], rows: Iterable[Row], cells: int) -> frozenset[str]:
    """Return the keys of the columns that ``table`` shows in ``cells``, for notes that explain columns."""
    shown = in_tables(columns)
