"""The front ends: text to Program. They share `source` (spans, diagnostics) and `rhythm.ir`, and
know no interpreter."""
