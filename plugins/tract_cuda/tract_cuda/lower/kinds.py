"""Which types kernels compute with."""

from __future__ import annotations

from tract_cuda.lowering import Site


def why_carried(site: Site) -> str | None:
    """Why there is no kernel for a node that computes with elements which kernels only move and convert."""
    outlets = [*site.node.inputs, *site.lowering.model.nodes[site.node.node].outlets()]
    elements = [site.lowering.element(outlet) for outlet in outlets]
    found = next((one for one in elements if one is not None and one.is_carried), None)
    return None if found is None else f"kernels only move and convert {found.name}"
