"""The limit on the number of visitors."""

from tests.app.support import pictures
from visformer.app.serving import capacity
from visformer.system import limits


def test_one_visitor_too_many_sees_an_error_and_is_admitted_later(new_app, monkeypatch):
    monkeypatch.setattr(limits, "SESSIONS", 2)
    monkeypatch.setattr(capacity, "count", lambda: 3)
    app = new_app(lang="zh")
    assert [text.value for text in app.text] == ["这台服务器最多同时接待 2 位访客，现在已经满了。请一分钟后再试。"]
    assert not pictures(app)
    assert not app.exception
    assert not app.text_input
    monkeypatch.setattr(capacity, "count", lambda: 2)  # this visitor included
    app.button(key="try_again").click().run()
    assert pictures(app)
    assert app.text_input


def test_admitted_visitors_stay_admitted(new_app, monkeypatch):
    app = new_app()
    monkeypatch.setattr(limits, "SESSIONS", 2)
    monkeypatch.setattr(capacity, "count", lambda: 3)
    assert pictures(app.run())
