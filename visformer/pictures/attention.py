"""The page Attention: the explorer, which the browser draws."""

from visformer.errors import N_
from visformer.pictures.registry.picture import Page

PAGE = Page(name="attention", section="see", order=10, title=N_("Attention"), where="attention")
