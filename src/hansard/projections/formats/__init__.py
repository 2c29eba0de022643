"""One file for each export format. `hansard.projections.FORMATS` names them."""
