"""PTX of ``ADD``: sums of lanes, sums of sites, and sums of the few lanes that have a value."""
