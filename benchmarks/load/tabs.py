"""Real Chromium tabs among the sessions: time from Enter to the painted picture, by the browser's own clock."""

import asyncio
import time
from collections.abc import Mapping, Sequence

from playwright.async_api import Browser, Page, async_playwright

from benchmarks import chromium
from benchmarks.browser import APP, WATCH
from benchmarks.load.expected import Expected
from benchmarks.load.plan import Task
from benchmarks.load.room import Outcome

_WAIT = 60_000


async def tabs(
    address: str, tasks: Sequence[Task], expected: Mapping[str, Expected], everybody: asyncio.Barrier
) -> Outcome:
    """Give each session a tab with its own context; tasks are done at their planned times, once all are connected."""
    outcome, own = Outcome(), {task.session: [] for task in tasks}  # type: dict[int, list[Task]]
    for task in tasks:
        own[task.session].append(task)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium.path(), args=list(chromium.FLAGS))
        pages = {session: await _opened(browser, address, outcome) for session in own}
        await everybody.wait()
        begin = time.perf_counter()

        async def stay(session: int) -> None:
            for task in own[session]:
                await asyncio.sleep(max(0.0, begin + task.at - time.perf_counter()))
                await _perform(pages[session], task, expected[task.sentence], outcome)

        await asyncio.gather(*map(stay, own))
        outcome.seconds = time.perf_counter() - begin
        await browser.close()
    return outcome


async def _opened(browser: Browser, address: str, outcome: Outcome) -> Page:
    context = await browser.new_context(locale="en-US", viewport={"width": 1440, "height": 900})
    context.set_default_timeout(_WAIT)
    page = await context.new_page()
    page.on("pageerror", lambda _: outcome.wrong.update(["an error in a browser"]))
    await page.goto(address)
    await page.wait_for_selector(APP.shown)
    return page


async def _perform(page: Page, task: Task, expected: Expected, outcome: Outcome) -> None:
    try:
        box = page.get_by_label("Sentence", exact=True)
        if await box.input_value() == task.sentence:
            return  # Enter would change nothing
        await box.fill(task.sentence)
        await page.wait_for_timeout(100)
        await page.locator(APP.shown).first.evaluate(WATCH, {"selector": APP.shown, "attribute": APP.attribute})
        await box.press("Enter")
        await page.wait_for_function("() => window.benchmark.shown")
        outcome.enter.append(await page.evaluate("window.benchmark.shown - window.benchmark.enter") / 1000)
        await page.get_by_text(f"Translation: {expected.translation}", exact=True).wait_for()
        lines = [await page.locator(".vf-side").nth(i).locator(".vf-token").all_inner_texts() for i in (0, 1)]
        if [tuple(line) for line in lines[:1]] != [expected.picture.tokens[0]]:
            outcome.wrong["a browser shows tokens of another sentence"] += 1
    except Exception as error:
        outcome.wrong[f"{type(error).__name__} in a browser"] += 1
