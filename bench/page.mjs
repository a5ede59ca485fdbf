/* page.mjs - part of bench/run (page.sh): how long pages take to open and to answer, in Chromium.
 *
 *     HEAPWISE_BUILD=build/release node bench/page.mjs ROUNDS PAGE...
 *
 * The least of ROUNDS, in ms of the clock, pages in turn. "Open": from the start of navigation until the first view is
 * drawn. "All read": until every view can be shown. A click: from the event until the next frame has been drawn. */
import { statSync } from 'node:fs';
import { frame, open, startBrowser } from '../tests/page/support.mjs';

const [rounds, ...pages] = process.argv.slice(2);
const browser = await startBrowser();

/* Runs ACTION in the page, until what it led to has been drawn. */
async function timed(page, action, argument) {
    const body = `(async (argument) => {
        const start = performance.now();
        await (${action})(argument);
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        return performance.now() - start;
    })`;
    const spent = await page.evaluate(`${body}(${JSON.stringify(argument ?? null)})`);
    await frame(page);
    return spent;
}

const click = '(selector) => document.querySelector(selector).click()';
const key = '(name) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }))';

async function measure(file) {
    const page = await open(browser, file, {}, '', () => new MutationObserver((_, observer) => {
        if (window.shown === undefined && document.querySelector('main h2')) {
            window.shown = NaN;
            requestAnimationFrame(() => setTimeout(() => { window.shown = performance.now(); }));
        }
        if (document.querySelector('#app:not([aria-busy]) main')) {
            window.complete = performance.now();
            observer.disconnect();
        }
    }).observe(document, { childList: true, subtree: true, attributes: true, attributeFilter: ['aria-busy'] }));
    await page.waitForFunction(() => window.shown > 0 && window.complete > 0);
    const times = await page.evaluate(() => ({ open: window.shown, 'all read': window.complete }));
    await page.waitForTimeout(3000); // as a person would: trees are made meanwhile
    const rows = await page.evaluate(() => document.querySelector('.summary')?.textContent);
    times.places = await timed(page, click, 'a[data-view=contexts]');
    const places = await page.locator('.summary').innerText();
    times['sort by number'] = await timed(page, click, '[data-key=count]');
    times['open a row'] = await timed(page, click, '.list-item .row');
    const choose = '([label, value]) => { const list = [...document.querySelectorAll(".choice")].find((each) => each.textContent.startsWith(label)).querySelector("select"); list.value = value; list.dispatchEvent(new Event("change")); }';
    for (const by of ['function', 'module'])
        times[`by ${by}`] = await timed(page, choose, ['By', by]);
    times['by function again'] = await timed(page, choose, ['By', 'function']);
    times['sandwich'] = await timed(page, '() => { location.hash = document.querySelector("a.to-sandwich").hash; return new Promise((done) => requestAnimationFrame(done)); }');
    times['flame graph'] = await timed(page, click, 'a[data-view=flame]');
    await page.locator('canvas').focus();
    await timed(page, key, 'ArrowDown');
    times['zoom in'] = await timed(page, key, 'Enter');
    times['zoom out'] = await timed(page, key, '0');
    const select = (index) => `(value) => { const list = document.querySelectorAll('.choice select')[${index}]; list.value = value; list.dispatchEvent(new Event('change')); }`;
    times['another value'] = await timed(page, select(0), 'count');
    times.inverted = await timed(page, select(1), 'inverted');
    times.overview = await timed(page, click, 'a[data-view=overview]');
    if (page.trouble.length)
        throw new Error(page.trouble.join('\n'));
    await page.context().close();
    return { times, places, rows };
}

const all = pages.map((file) => ({ file, least: {}, places: '' }));
for (let round = 0; round < Number(rounds); round++)
    for (const each of all) {
        const result = await measure(each.file);
        each.places = result.places;
        for (const [what, ms] of Object.entries(result.times))
            each.least[what] = Math.min(each.least[what] ?? Infinity, ms);
    }
for (const { file, least, places } of all) {
    console.log(`${file.split('/').pop()}: ${(statSync(file).size / 1e6).toFixed(1)} MB, ${places}`);
    for (const [what, ms] of Object.entries(least))
        console.log(`    ${what.padEnd(16)} ${ms.toFixed(0).padStart(6)} ms`);
}
await browser.close();
