"""The limit on the number of visitors."""

from tests.app.support import picture_components, texts
from visformer.app.serving import capacity
from visformer.system import limits


def set_visitors(monkeypatch, count, *, limit=2):
    monkeypatch.setattr(limits, "SESSIONS", limit)
    monkeypatch.setattr(capacity, "count", lambda: count)


def test_one_visitor_too_many_gets_an_error_and_is_admitted_later(new_app, monkeypatch):
    set_visitors(monkeypatch, 3)
    app = new_app(lang="zh")
    assert texts(app) == ["这台服务器最多同时接待 2 位访客，现在已经满了。请一分钟后再试。"]
    assert not picture_components(app)
    assert not app.exception
    assert not app.text_input
    set_visitors(monkeypatch, 2)  # this visitor included
    app.button(key="try_again").click().run()
    assert picture_components(app)
    assert app.text_input


def test_admitted_visitors_stay_admitted(new_app, monkeypatch):
    app = new_app()
    set_visitors(monkeypatch, 3)
    assert picture_components(app.run())
