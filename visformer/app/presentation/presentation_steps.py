"""What page scripts need of :mod:`visformer.app.session.presentation_steps`."""

from visformer.app.session.presentation_steps import begin_options, came, offer, offer_options

__all__ = ["begin_options", "came", "offer", "offer_options"]
