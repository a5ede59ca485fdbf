/* page_test.mjs - the page of heapwise view in Chromium: every view, keys, links, colours, hostile names, a large profile.
 *
 *     HEAPWISE_BUILD=build/release node tests/page/page_test.mjs [PART OF A TEST'S NAME]
 *
 * Figures are compared with heapwise report --json. Every page is opened from disk; at the end no request may have left. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { axeSource, frame, go, heapwise, leaks, makePage, open, report, run, shoot, simpleParts, skip, source, startBrowser, stream, template, tries, view, viewerModule, work } from './support.mjs';

if (!existsSync(template))
    skip(`the page was not built: ${template}`);
const browser = await startBrowser();
const tests = [];
const test = (name, body) => tests.push({ name, body });
const minimal = { format: 1, process: { executable: '/bin/made-up', duration_ns: 1e9 }, totals: { allocations: 3, bytes_allocated: 600 } };
const text = (page, selector) => page.locator(selector).first().innerText();

/* ---- profiles ---- */

run(heapwise, 'record', '-q', '-f', '-o', 'perl.hwprof', '--', '/usr/bin/perl', path.join(source, 'examples/visitors.pl'));
const perlPage = view('perl');
const perl = report('perl');
const peaks = [...perl.contexts].sort((a, b) => b.peak_bytes - a.peak_bytes);

/* A profile of shapes.cpp with words of GRANULE bytes; null where heapwise c++ finds no compiler. */
function shapes(granule) {
    const name = `shapes${granule}`;
    const built = tries(heapwise, 'c++', '--fields', `--granule=${granule}`, '-O2', '-g', '-pthread', path.join(source, 'tests/page/shapes.cpp'), '-o', name);
    if (built.status)
        return null;
    run(heapwise, 'record', '-q', '-f', '-o', `${name}.hwprof`, '--', `./${name}`);
    return { page: view(name), report: report(name) };
}
const shapes8 = shapes(8);
const shapes4 = shapes(4);

/* ---- views ---- */

test('numbers are written as in the text report', async () => {
    const format = await viewerModule('format.ts');
    const rows = readFileSync(path.join(source, 'tests/golden/numbers.txt'), 'utf8').trim().split('\n').filter((row) => !row.startsWith('#'));
    assert.ok(rows.length > 50);
    for (const row of rows) {
        const [kind, value, ...words] = row.split(' ');
        const made = kind === 'bytes' ? format.bytes(Number(value)) : kind === 'time' ? format.duration(Number(value)) : format.percent(...value.split('/').map(Number));
        assert.equal(made, words.join(' '), row);
    }
    assert.equal(format.command(['redis-server', '--save', '', 'a b', "it's", '--x=1']), "redis-server --save '' 'a b' 'it's' --x=1");
});

test('overview says what happened', async () => {
    const page = await open(browser, perlPage);
    const tiles = await text(page, '.tiles');
    for (const value of [perl.totals.allocations.toLocaleString('en-US'), perl.totals.reallocations.toLocaleString('en-US')])
        assert.ok(tiles.includes(value), `${value} in ${tiles}`);
    assert.match(await page.title(), /perl/);
    const rows = await page.locator('.functions tbody tr').count();
    assert.equal(rows, 12);
    assert.ok((await text(page, '.gaps')).includes(perl.not_observed[0].slice(0, 40)));
    await page.waitForSelector('.plot canvas');
    await shoot(page, 'overview');
    return page;
});

test('the overview is there before the rest of the page is read', async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    page.trouble = [];
    page.on('pageerror', (error) => page.trouble.push(String(error)));
    await page.addInitScript(() => { // what the second stream says comes when the test lets it
        const Real = DecompressionStream;
        const gate = new Promise((open) => { window.letIn = open; });
        let count = 0;
        window.DecompressionStream = function (format) {
            const { readable, writable } = new Real(format);
            return { writable, readable: ++count === 1 ? readable : readable.pipeThrough(new TransformStream({ flush: () => gate })) };
        };
    });
    await page.goto(`file://${perlPage}`);
    await page.waitForSelector('#app[aria-busy] main .tiles');
    assert.equal(await page.locator('.functions tbody tr').count(), 12);
    assert.ok((await text(page, '.tiles')).includes(perl.totals.allocations.toLocaleString('en-US')));
    await page.locator('a[data-view=contexts]').click();
    assert.match(await text(page, 'main'), /Reading the profile/);
    await page.evaluate(() => window.letIn());
    await page.waitForSelector('#app:not([aria-busy]) main .list-rows .row');
    await go(page, '#/overview');
    assert.equal(await page.locator('section[inert]').count(), 0);
    return page;
});

test('a range of the timeline leads to the places in use then', async () => {
    const page = await open(browser, perlPage);
    const box = await page.locator('.plot .u-over').boundingBox();
    await page.mouse.move(box.x + box.width * 0.1, box.y + 50);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.3, box.y + 60, { steps: 4 });
    await page.mouse.up();
    const said = await text(page, '.range');
    assert.match(said, /allocations, .* frees, heap .*, at most/);
    const from = Number(new URLSearchParams(new URL(page.url()).hash.split('?')[1]).get('from'));
    assert.ok(Math.abs(from / perl.process.duration_ns - 0.1) < 0.03, `from ${from}`);
    await page.locator('.range a', { hasText: 'The places in use then' }).click();
    await frame(page);
    assert.match(await text(page, '.summary'), /of \d+ places in use between/);
    await page.keyboard.press('1');
    await page.locator('.plot').focus();
    await page.keyboard.press('+');
    assert.match(page.url(), /from=/);
    await page.keyboard.press('Escape');
    assert.doesNotMatch(page.url(), /from=/);
    return page;
});

/* ---- a moment, a range ---- */

const rowsOf = (page) => page.locator('.list-rows .row').evaluateAll((all) => Object.fromEntries(all.map((row) => {
    const cells = [...row.querySelectorAll('.cell')].map((cell) => cell.textContent);
    return [row.querySelector('.name').textContent, cells.slice(0, -1)];
})));

test('a moment, a range: every view shows what is known of it', async () => {
    if (!compiled('phases', 'phases.c', '-g', '-I', path.join(source, 'include/heapwise')))
        return console.log('  not looked at: clang cannot build it');
    run(heapwise, 'record', '-q', '-f', '-o', 'phases.hwprof', '--', './phases', '60');
    const [first, second, last] = ['phases.dump1', 'phases.dump2', 'phases'].map(report);
    const [one, two, end] = [first, second, last].map((each) => each.process.duration_ns);
    const peak = last.totals.peak_time_ns;
    assert.match(tries(heapwise, 'view', '-f', 'phases.hwprof').stderr, /to compare them: heapwise view phases\.hwprof phases\.dump\*\.hwprof/);
    const file = path.join(work, 'phases-moments.html');
    run(heapwise, 'view', '-q', '-f', '-o', file, 'phases.hwprof', 'phases.dump2.hwprof', 'phases.dump1.hwprof');
    const page = await open(browser, file, {}, `#/contexts?moment=${one}`);
    /* What phases.c says that it has then. */
    assert.deepEqual(await rowsOf(page), { early: ['976.6 KiB', '1,000'] });
    assert.match(await text(page, '.range-bar'), /^Dump 1 \(phases\.dump1\.hwprof\), .* 976\.6 KiB live.*Every place is known/);
    await page.locator('.range-bar a', { hasText: 'dump 2' }).click();
    await frame(page);
    assert.deepEqual(await rowsOf(page), { middle: ['1.9 MiB', '1,000'], early: ['585.9 KiB', '600'] });
    await page.locator('.range-bar a', { hasText: 'peak' }).click();
    await frame(page);
    assert.deepEqual(await rowsOf(page), { middle: ['1.9 MiB', '1,000'], early: ['585.9 KiB', '600'], late: ['488.3 KiB', '1,000'] });
    await page.locator('.list-rows .row', { hasText: 'middle' }).click();
    assert.match(await text(page, '.details'), /Of the whole run[\s\S]*First block/i);
    await go(page, `#/contexts?from=${one}&to=${two}`);
    assert.deepEqual(await rowsOf(page), { middle: ['1.9 MiB', '1,000', '1.9 MiB', '0 B'], early: ['0 B', '0', '0 B', '390.6 KiB'] });
    assert.match(await text(page, '.range-bar'), /1,000 allocations, 400 frees, heap \+1\.5 MiB, at most [\d.]+ MiB\. Every place is known/);
    await page.locator('a[data-view=flame]').click();
    await frame(page);
    assert.match(page.url(), /flame\?from=\d+&to=\d+/);
    assert.match(await page.locator('canvas').getAttribute('aria-label'), /^all: 1\.9 MiB /);
    await go(page, `#/flame?moment=${two}`);
    assert.match(await page.locator('canvas').getAttribute('aria-label'), /^all: 2\.5 MiB /);
    await go(page, `#/sandwich?f=main&moment=${end}`);
    assert.match(await text(page, '.chosen .summary'), /Live then: total \(cum\) 1\.0 MiB \(100 %\), self 0 B .* on 2 call stacks/);
    await page.keyboard.press('Escape');
    assert.doesNotMatch(page.url(), /moment=/);
    assert.match(await text(page, '.chosen .summary'), /Live at peak: total \(cum\) 3\.0 MiB/);
    assert.equal(await page.locator('.range-bar').count(), 0);
    /* Without the dumps: places that did not change are known, of the others it is said that they are not. */
    const without = await open(browser, view('phases'), {}, `#/contexts?moment=${two}`);
    const at = [...last.timeline].sort((a, b) => Math.abs(a.time_ns - two) - Math.abs(b.time_ns - two))[0];
    const early = last.contexts.find((each) => each.stack[0].function === 'early');
    const known = early.last_free.time_ns + 1000 < at.time_ns && Math.abs(at.time_ns - peak) > 1;
    assert.deepEqual(await rowsOf(without), known ? { early: ['585.9 KiB', '600'], middle: ['?', '?'], ...(at.time_ns > last.contexts.find((each) => each.stack[0].function === 'late').first_ns ? { late: ['?', '?'] } : {}) } : await rowsOf(without));
    assert.match(await text(without, '.range-bar'), /is not recorded\. HEAPWISE_OPTIONS=dump-interval=SECONDS heapwise record/);
    await without.context().close();
    /* Another process's profile is no dump. */
    const refused = tries(heapwise, 'view', '-f', '-o', 'no.html', 'phases.hwprof', 'perl.hwprof');
    assert.equal(refused.status, 2);
    assert.match(refused.stderr, /'perl\.hwprof' is not a dump of the process of 'phases\.hwprof'/);
    return page;
});

test('a moment is chosen with the mouse, with keys, and given back', async () => {
    const page = await open(browser, perlPage);
    const peak = Math.floor(perl.totals.peak_time_ns);
    const box = await page.locator('.plot .u-over').boundingBox();
    const moment = async () => Number(await page.evaluate(() => new URLSearchParams(location.hash.split('?')[1] ?? '').get('moment')));
    assert.match(await text(page, '.tiles'), /^Peak/);
    await page.mouse.click(box.x + (box.width * peak) / perl.process.duration_ns + 2, box.y + 60);
    assert.equal((await moment()), peak, 'near the peak is the peak');
    assert.match(await text(page, '.tiles'), /^Live at the peak/);
    assert.match(await text(page, '.range'), /^The peak, .* live.* Every place is known/);
    assert.match(await text(page, '.functions thead'), /live then/);
    await page.mouse.click(box.x + box.width * 0.3, box.y + 60);
    const wanted = 0.3 * perl.process.duration_ns;
    const least = Math.min(...perl.timeline.map((each) => Math.abs(each.time_ns - wanted)));
    assert.ok(Math.abs((await moment()) - wanted) < least + 0.02 * perl.process.duration_ns, `${await moment()} for ${wanted}`);
    const at = await moment();
    const point = perl.timeline.find((each) => each.time_ns === at);
    assert.ok((await text(page, '.tiles')).includes(shownBytes(point.live_bytes)), await text(page, '.tiles'));
    await page.goBack();
    assert.equal((await moment()), peak);
    await frame(page);
    await page.locator('.plot').focus();
    await page.keyboard.press('ArrowLeft');
    assert.ok((await moment()) < peak);
    await page.keyboard.press('PageDown');
    assert.equal((await moment()), peak);
    await page.keyboard.press('Escape');
    assert.equal(await moment(), 0);
    assert.match(await text(page, '.tiles'), /^Peak/);
    await page.keyboard.press('PageDown');
    await page.keyboard.press('2');
    await page.waitForSelector('main.flame .range-bar');
    assert.equal((await moment()), peak);
    const all = perl.contexts.filter((each) => !each.pool).reduce((sum, each) => sum + each.peak_bytes, 0);
    assert.ok((await page.locator('canvas').getAttribute('aria-label')).startsWith(`all: ${shownBytes(all)}`));
    await shoot(page, 'moment-flame');
    await page.getByRole('button', { name: 'Whole run' }).click();
    await frame(page);
    assert.equal(await page.locator('.range-bar').count(), 0);
    return page;
});

test('flame graph: shapes, values, search, zoom, focus', async () => {
    const page = await open(browser, perlPage, {}, '#/flame');
    const label = () => page.locator('canvas').getAttribute('aria-label');
    assert.match(await label(), /^all: 31\.|^all: /);
    for (const shape of ['flame', 'inverted', 'icicle']) {
        await page.locator('.choice:has-text("Shape") select').selectOption(shape);
        await frame(page);
        await shoot(page, `flame-${shape}`);
    }
    const values = await page.locator('.choice:has-text("Value") option').evaluateAll((all) => all.map((each) => each.value));
    for (const value of values) {
        await page.locator('.choice:has-text("Value") select').selectOption(value);
        await frame(page);
        assert.ok(page.url().includes(`value=${value}`));
    }
    assert.deepEqual(values.slice(0, 3), ['peak', 'bytes', 'count']);
    await page.locator('.choice:has-text("Value") select').selectOption('bytes');
    await page.keyboard.press('Escape');
    await page.keyboard.press('/');
    await page.keyboard.type('hv_common');
    /* What the search says is the share of the places with that function anywhere on the stack. */
    const all = perl.contexts.reduce((sum, each) => sum + each.bytes, 0);
    const hit = perl.contexts.filter((each) => each.stack.some((at) => at.function?.includes('hv_common'))).reduce((sum, each) => sum + each.bytes, 0);
    await page.waitForFunction((share) => document.querySelector('.matched').textContent.includes(share), `${((hit / all) * 100).toFixed(1)} %`);
    await shoot(page, 'flame-search');
    await page.keyboard.press('Escape');
    await page.locator('canvas').focus();
    for (let i = 0; i < 5; i++)
        await page.keyboard.press('ArrowDown');
    assert.match(await label(), /^perl_run|^Perl|^main/);
    const before = await label();
    await page.keyboard.press('Enter');
    assert.match(decodeURIComponent(page.url()), /zoom=.*main/);
    assert.equal(await label(), before);
    await page.keyboard.press('Backspace');
    await page.keyboard.press('0');
    assert.doesNotMatch(page.url(), /zoom=/);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('f');
    assert.match(page.url(), /focus=_start/);
    assert.match(await text(page, '.chip'), /_start/);
    await page.getByRole('button', { name: 'Copy stack' }).click();
    return page;
});

test('flame graph: what is too narrow to be drawn is counted', async () => {
    const stacks = Array.from({ length: 4000 }, (_, i) => [`f${i}`, 'caller', 'main']);
    const page = await open(browser, makePage('narrow', stream(simpleParts(minimal, stacks))), {}, '#/flame?value=bytes');
    const box = await page.locator('canvas').boundingBox();
    /* By bytes 100, 200 … of 1,322 pixels or so: some of the largest are drawn at most, all others share a box. */
    await page.mouse.move(box.x + box.width - 5, box.y + 3.5 * 19);
    const tip = await text(page, '.tip.shown');
    assert.match(tip, /^[\d,]+ functions too narrow to be drawn: [>\d.]+ % below caller/);
    await page.locator('canvas').focus();
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown'])
        await page.keyboard.press(key);
    assert.match(await page.locator('canvas').getAttribute('aria-label'), /^(caller|f\d+):/);
    return page;
});

test('flame graph: totals are those of the report', async () => {
    const page = await open(browser, perlPage, {}, '#/flame?value=count');
    assert.match(await page.locator('canvas').getAttribute('aria-label'), new RegExp(`^all: ${perl.totals.allocations.toLocaleString('en-US')} `));
    return page;
});

test('places: sorted, filtered, opened, copied', async () => {
    const page = await open(browser, perlPage, {}, '#/contexts?by=stack');
    const first = () => text(page, '.list-rows .row');
    assert.match(await text(page, '.summary'), new RegExp(`^${perl.contexts.length} call stacks`));
    const name = peaks[0].stack.map((each) => each.function).find((each) => each && !/malloc|realloc|calloc/.test(each));
    assert.ok((await first()).includes(name), `${name} in ${await first()}`);
    await page.getByRole('button', { name: /^allocations/ }).click();
    const most = Math.max(...perl.contexts.map((each) => each.allocations));
    assert.ok((await first()).includes(most.toLocaleString('en-US')));
    assert.match(page.url(), /sort=count/);
    await page.getByRole('button', { name: /^allocations/ }).click();
    assert.ok((await first()).match(/\b1\b/));
    await page.keyboard.press('/');
    await page.keyboard.type('hv_common count>100 bytes>=1k');
    const wanted = perl.contexts.filter((each) => each.stack.some((at) => at.function?.includes('hv_common')) && each.allocations > 100 && each.bytes >= 1024).length;
    assert.ok(wanted > 0);
    await page.waitForFunction((count) => document.querySelector('.summary').textContent.startsWith(`${count} of`), wanted);
    await page.locator('#search').fill('bytes>1parsec');
    await page.waitForFunction(() => document.querySelector('.problem').textContent.includes('unit'));
    await page.locator('#search').fill('hv_common');
    await page.waitForFunction(() => !document.querySelector('.problem').textContent);
    await page.locator('#search').fill('');
    await page.keyboard.press('Escape'); // leaves the field: the list is searched by then, and what is opened stays open
    assert.match(await text(page, '.summary'), new RegExp(`^${perl.contexts.length} call stacks`));
    await page.locator('.list').focus();
    await page.keyboard.press('Home');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.detail .stack li');
    assert.match(page.url(), /at=\d+/);
    assert.equal(await page.locator('.row[aria-expanded=true]').count(), 1);
    await shoot(page, 'places-open');
    await page.keyboard.press('c');
    const id = Number(new URLSearchParams(page.url().split('?')[1]).get('at'));
    const context = perl.contexts.find((each) => each.id === id);
    const copied = await page.evaluate(() => window.copied);
    for (const at of context.stack.filter((each) => each.function))
        assert.ok(copied.includes(at.function), `${at.function} in ${copied}`);
    await page.getByRole('button', { name: 'Copy table' }).click();
    assert.equal((await page.evaluate(() => window.copied)).trim().split('\n').length, Math.min(200, perl.contexts.length) + 1);
    await page.locator('.menu summary').click();
    await page.getByRole('checkbox', { name: 'Threads', exact: true }).check();
    await page.waitForSelector('[data-key=threads]');
    await page.locator('.list').focus();
    await page.keyboard.press('End');
    await frame(page);
    assert.equal(await page.locator('.row.active').getAttribute('data-index'), String(perl.contexts.length - 1));
    return page;
});

test('a link restores what was looked at', async () => {
    const wanted = peaks[20].id;
    const page = await open(browser, perlPage, {}, `#/contexts?by=stack&at=${wanted}&sort=bytes&columns=bytes+leaked`);
    await page.waitForSelector('.detail .stack li');
    assert.equal(await page.locator('.list-head [role=columnheader]').count(), 3);
    assert.equal(await page.locator('[aria-sort=descending]').innerText(), 'bytes▾');
    const { function: caller } = perl.contexts.find(({ stack }) => stack[0]?.function === 'Perl_safesysmalloc').stack.find(({ wrapper }) => !wrapper);
    await go(page, `#/flame?shape=inverted&value=count&zoom=${caller}`);
    assert.ok((await page.locator('canvas').getAttribute('aria-label')).startsWith(caller), 'stacks end above allocation wrappers');
    await page.goBack();
    await page.waitForSelector('.list');
    return page;
});

test('hot and cold: points move with the keys and lead to places', async () => {
    if (!shapes8)
        return console.log('  not looked at: heapwise c++ has no compiler here');
    const page = await open(browser, shapes8.page, {}, '#/hot');
    await page.locator('canvas').focus();
    await page.keyboard.press('Home');
    const largest = [...shapes8.report.contexts].sort((a, b) => b.bytes - a.bytes)[0];
    assert.ok((await text(page, '#hot-said')).includes(`accesses ${largest.accesses.total.toLocaleString('en-US')}`), await text(page, '#hot-said'));
    await shoot(page, 'hot-and-cold');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.detail');
    return page;
});

test('structs: today beside the suggestion', async () => {
    if (!shapes8)
        return console.log('  not looked at: heapwise c++ has no compiler here');
    const structure = shapes8.report.fields.find((each) => each.struct === 'node');
    const page = await open(browser, shapes8.page, {}, '#/structs?struct=node');
    assert.ok((await text(page, '.struct .summary')).includes(`${structure.reads.toLocaleString('en-US')} reads`));
    const fields = await page.locator('table.fields tbody tr').count();
    assert.equal(fields, structure.fields.length);
    const today = await page.locator('.layouts > div').first().locator('.line .field').first().boundingBox();
    const line = await page.locator('.layouts > div').first().locator('.line').first().boundingBox();
    assert.ok(Math.abs(today.width / line.width - 8 / 64) < 0.02, 'the first field takes 8 of 64 bytes');
    if (structure.suggestion)
        assert.ok((await text(page, '.layouts')).includes(`Suggested: ${structure.suggestion.size_after} B`));
    await shoot(page, 'structs');
    await page.locator('[role=option][aria-selected=true]').focus();
    await page.keyboard.press('ArrowDown');
    assert.equal(await page.locator('[role=option][aria-selected=true]').evaluate((each) => each === document.activeElement), true);
    assert.doesNotMatch(page.url(), /struct=node(&|$)/);
    return page;
});

test('blocks: strips of words, of 8 and of 4 bytes', async () => {
    if (!shapes8 || !shapes4)
        return console.log('  not looked at: heapwise c++ has no compiler here');
    const page = await open(browser, shapes8.page, {}, '#/blocks');
    const context = shapes8.report.contexts.find((each) => each.type === 'node');
    const row = page.locator('.list-item', { hasText: 'make_node' }).first();
    await row.click();
    await page.waitForSelector('.words table');
    const rows = await page.locator('.words tbody tr').allInnerTexts();
    const most = Math.max(...context.histogram);
    assert.ok(rows[0].includes(most.toLocaleString('en-US')), rows[0]);
    assert.ok(rows[0].includes(`${8 * context.histogram.indexOf(most)}–`), rows[0]);
    await shoot(page, 'blocks');
    await page.locator('.choice:has-text("Of") select').selectOption('variables');
    await page.waitForFunction(() => document.querySelector('.strips').textContent.includes('counters'));
    const four = await open(browser, shapes4.page, {}, '#/blocks');
    await four.locator('.list-item', { hasText: 'make_node' }).first().click();
    await four.waitForSelector('.words table');
    assert.match(await text(four, '.words thead'), /read[\s\S]*written/);
    await shoot(four, 'blocks-words');
    await four.context().close();
    return page;
});

function allocatorReport() {
    const operations = [];
    for (const phase of ['serial', 'parallel'])
        for (const [kind, base] of [['new', 140], ['reused', 40], ['free', 35], ['realloc', 180]])
            for (const [size, factor] of [['small', 1], ['large', 30]])
                operations.push({ phase, size, kind, count: 1000 * factor, cycles: { mean: base * factor * 1.4, p50: base * factor, p90: 2 * base * factor, p99: 9 * base * factor, max: 900 * base * factor,
                    ...(phase === 'serial' ? { histogram: [{ least: 0, most: 0, count: 3 }, { least: base * factor, most: base * factor + 7, count: 800 }, { least: 90 * base * factor, most: null, count: 197 }] } : {}) } });
    const points = Array.from({ length: 40 }, (_, i) => ({ time_ns: i * 25e6, requested_bytes: 1e7 + i * 1e5, internal_bytes: 2e6, blowup_bytes: i * 1e5, resident_bytes: 3e7 }));
    return { ...minimal, allocator: {
        name: 'made-up 1.0', style: 'bins', operations, memory_at_peak: { total: 6e7, real: 3e7, internal: 6e6, blowup: 1.6e7, external: 8e6 }, memory_over_time: points,
        locks: [{ name: 'main_arena', acquired: 1000000, contended: 4000, by_kind: { free: 12 } }], syscalls: [{ name: 'mmap', count: 33, cycles: 12000, by_kind: { new: 33 } }],
        futex: { waits: 22 }, false_sharing: { active_lines: 12, passive_lines: 3 }, cache_utilization_percent: 61.2,
        prediction: [{ allocator: 'other', speedup: 1.12, low: 1.02, high: 1.2, measured: 1.1 }], verdict: { summary: 'Partly.', causes: [{ cause: 'rate', title: 'Too many', why: 'So many.', what_to_do: 'Fewer.', expected_gain: 'at most 1 s' }] }, something_new: [{ a_bytes: 2048, b: 'text' }] } };
}

/* The program NAME, of a source of the tests, with OPTIONS of the compiler; false where there is none. */
const compiled = (name, from, ...options) => !tries('clang', '-O1', ...options, path.join(source, 'tests/page', from), '-o', name).status;

test('blocks: words of sampled accesses, marked as such', async () => {
    if (!compiled('samples', 'samples.c', '-g'))
        return console.log('  not looked at: clang cannot build it');
    run(heapwise, 'record', '-q', '-f', '--sample-accesses=1000', '-o', 'samples.hwprof', '--', './samples');
    const told = report('samples').contexts.map((each) => ({ stack: each.stack, words: each.sampled?.accesses?.words ?? [] })).filter((each) => each.words.length);
    const page = await open(browser, view('samples'), {}, '#/blocks');
    assert.ok(told.length, 'nothing was sampled');
    assert.match(await text(page, '.tools'), /sampled[\s\S]*no sample/);
    assert.equal(Number(await page.locator('.list').getAttribute('aria-rowcount')) - 1, told.length);
    const small = told.find((each) => each.stack.some((at) => at.function === 'make'));
    if (small) {
        await page.locator('.list-item', { hasText: 'make' }).first().click();
        await page.waitForSelector('.words table');
        const rows = await page.locator('.words tbody tr').allInnerTexts();
        const most = [...small.words].sort((a, b) => b.reads + b.writes - a.reads - a.writes || a.offset - b.offset)[0];
        assert.deepEqual(rows[0].split(/\s+/).filter(Boolean), [`${most.offset}–${most.offset + 7}`, most.reads, most.writes].map((each) => each.toLocaleString('en-US')), rows[0]);
        assert.match(await text(page, '.words'), /From a sample of the accesses/);
        const all = small.words.reduce((sum, each) => sum + each.reads + each.writes, 0);
        assert.ok((await page.locator('.list-item', { hasText: 'make' }).first().innerText()).includes(`${all.toLocaleString('en-US')} sample`));
    }
    await shoot(page, 'blocks-samples');
    return page;
});

test('overview: lost blocks, where they were searched for', async () => {
    if (!compiled('one', 'one.c'))
        return console.log('  not looked at: clang cannot build it');
    for (const [name, ...program] of [['lost', './one', '1', 'lost'], ['kept', '/usr/bin/perl', '-e', '1']]) {
        run(heapwise, 'record', '-q', '-f', '--leaks', '-o', `${name}.hwprof`, '--', ...program);
        const lost = JSON.parse(run(heapwise, 'report', '--json', `${name}.hwprof`)).leaks.filter((leak) => /^(definite|indirect)$/.test(leak.class));
        const [blocks, bytes] = [lost.reduce((sum, leak) => sum + leak.blocks, 0), lost.reduce((sum, leak) => sum + leak.bytes, 0)];
        assert.ok(name === 'kept' || bytes >= 1000, `${bytes} bytes lost`);
        const page = await open(browser, view(name), {}, '#/overview');
        const tiles = await text(page, '.tiles');
        assert.ok(tiles.includes(blocks ? `${shownBytes(bytes)} in ${blocks} block${blocks > 1 ? 's' : ''} lost` : 'none of them lost'), tiles);
        await page.close();
    }
});

const allViews = ['overview', 'flame', 'flame?shape=inverted', 'contexts', 'contexts?by=function', 'sandwich?f=main', 'changes', 'hot', 'structs', 'blocks', 'allocator', 'memory', 'keeps', 'pinned'];

test('every kind of profile opens in every view', async () => {
    if (!compiled('one', 'one.c') || !compiled('stripped', 'samples.c', '-s'))
        return console.log('  not looked at: clang cannot build it');
    run(heapwise, 'record', '-q', '-f', '-o', 'none.hwprof', '--', './one');
    run(heapwise, 'record', '-q', '-f', '-o', 'one.hwprof', '--', './one', '1');
    run(heapwise, 'record', '-q', '-f', '--sample-accesses=1000', '-o', 'stripped.hwprof', '--', './stripped');
    const kinds = ['none', 'one', 'stripped'];
    if (shapes8 && shapes4) {
        run(heapwise, 'c++', '--fields', '-O2', '-g', '-pthread', path.join(source, 'tests/page/shapes.cpp'), '-o', 'fields');
        run(heapwise, 'record', '-q', '-f', '-o', 'fields.hwprof', '--', './fields');
        run(heapwise, 'merge', '-q', '-f', '-o', 'merged.hwprof', 'shapes8.hwprof', 'stripped.hwprof', 'perl.hwprof');
        kinds.push('fields', 'merged', 'shapes4');
    }
    for (const kind of kinds) {
        const page = await open(browser, view(kind, '--baseline', 'one.hwprof'));
        for (const each of allViews) {
            await go(page, `#/${each}`);
            assert.ok((await text(page, 'main')).trim().length > 20, `${kind}: ${each} is empty`);
            assert.deepEqual(page.trouble, [], `${kind}: ${each}`);
        }
        await go(page, '#/overview');
        const said = { none: /Allocated\s+nothing[\s\S]*Nothing was allocated\./, merged: /a sum of 3 runs, the longest of/ }[kind];
        assert.ok(!said || said.test(await text(page, 'main')), await text(page, 'main'));
        if (kind === 'merged') { /* what was merged are no runs of heapwise allocators */
            await go(page, '#/allocator');
            assert.match(await text(page, 'main'), /was not observed/);
        }
        await page.context().close();
    }
});

test('every view in a narrow window, and in the dark', async () => {
    const file = shapes8 ? shapes8.page : perlPage;
    for (const [name, options] of [['narrow', { viewport: { width: 390, height: 844 } }], ['dark', { viewport: { width: 1280, height: 800 }, colorScheme: 'dark' }]]) {
        const page = await open(browser, file, options);
        for (const each of allViews.filter((key) => key !== 'changes')) {
            await go(page, `#/${each}`);
            if (await page.locator('.list-rows .row').count())
                await page.locator('.list-rows .row').first().click({ position: { x: 20, y: 8 } });
            assert.ok(await page.evaluate(() => document.querySelector('main').scrollWidth <= document.querySelector('main').clientWidth), `${name}: ${each} is wider than the window`);
            await shoot(page, `${name}-${each.replace(/\W+/g, '-')}`);
        }
        assert.deepEqual(page.trouble, []);
        await page.context().close();
    }
});

test('allocator: known parts are drawn, others shown', async () => {
    const page = await open(browser, makePage('allocator', stream(simpleParts(allocatorReport(), [['f', 'main']]))), {}, '#/allocator');
    await page.waitForSelector('.plot canvas');
    const shown = await text(page, 'main');
    for (const wanted of ['Partly.', 'Too many', 'So many.', 'Fewer.', 'at most 1 s', 'made-up 1.0', 'main_arena', 'mmap', '1.12×', '57.2 MiB', '61.2 %', 'something new', '2.0 KiB'])
        assert.ok(shown.includes(wanted), `${wanted} in ${shown}`);
    assert.equal(await page.locator('svg.times').count(), 17);
    /* Histograms: a bar for each bin, as high as the share of the fullest one. */
    const bars = await page.locator('tr:has-text("new, small"):has-text("serial") svg.times rect.bar').evaluateAll((all) => all.map((bar) => [Number(bar.getAttribute('height')), bar.textContent]));
    assert.equal(bars.length, 3);
    assert.equal(bars[1][0], 22);
    assert.equal(bars[1][1], '140 to 147 cycles: 800');
    assert.ok(bars[0][0] < bars[2][0] && bars[2][0] < bars[1][0]);
    await shoot(page, 'allocator');
    return page;
});

test('allocator: what a run in allocator mode tells', async () => {
    run(heapwise, 'record', '-q', '-f', '--mode=allocator', '-o', 'allocator-run.hwprof', '--', '/usr/bin/perl', '-e', 'my %h; $h{$_} = "x" x ($_ % 300) for 1..30000');
    const observed = report('allocator-run').allocator;
    const page = await open(browser, view('allocator-run'), {}, '#/allocator');
    const all = observed.operations.reduce((sum, each) => sum + each.count, 0);
    assert.ok((await text(page, 'main')).includes(`Operations: ${all.toLocaleString('en-US')}`));
    const bins = observed.operations.reduce((sum, each) => sum + (each.cycles?.histogram.length ?? 0), 0);
    assert.ok(bins > 10);
    assert.equal(await page.locator('.operations rect.bar').count(), bins);
    await shoot(page, 'allocator-run');
    assert.ok(!observed.prediction?.length || (await text(page, 'main')).includes('Not measured:'));
    /* What heapwise allocators has measured stands beside it. */
    const speedup = (value) => ({ speedup: value, low: value - 0.02, high: value + 0.02 });
    const one = { version: '9.9', time_s: 0.125, peak_rss_bytes: 12 << 20, page_faults: 4321 };
    writeFileSync(path.join(work, 'runs.json'), JSON.stringify([{ ...one, allocator: 'glibc', present: true, measured: speedup(1) }, { ...one, allocator: 'madealloc', chosen: true, predicted: speedup(1.25), measured: speedup(1.5), note: '<b>as told</b>' }]));
    const beside = await open(browser, view('allocator-run', '--allocators', 'runs.json'), {}, '#/allocator');
    const shown = await text(beside, 'main');
    for (const wanted of ['madealloc 9.9 (to choose)', '1.25× (1.23–1.27)', '1.50× (1.48–1.52)', '125 ms', '12.0 MiB', '4,321', '<b>as told</b>'])
        assert.ok(shown.includes(wanted), `${wanted} in ${shown}`);
    assert.equal(await beside.locator('rect.measured').first().isVisible(), true);
    await beside.getByText('madealloc').first().scrollIntoViewIfNeeded();
    await shoot(beside, 'allocator-measured');
    assert.deepEqual(beside.trouble, []);
    await beside.context().close();
    writeFileSync(path.join(work, 'runs.json'), '{"no": "list"}');
    assert.match(tries(heapwise, 'view', '-f', '--allocators', 'runs.json', 'allocator-run.hwprof').stderr, /runs\.json: not what heapwise allocators --json writes/);
    return page;
});

test('sizes: bars are those of the report, and list their places', async () => {
    const format = await viewerModule('format.ts');
    const page = await open(browser, perlPage, {}, '#/sizes?steps=each');
    const bars = async () => (await page.locator('.histogram .histogram-value').allInnerTexts()).filter((value) => value !== '0 B' && value !== '0');
    const of = (kind, value) => perl[`${kind}_distribution`].bars.map((bar) => bar[value]).filter((value) => value > 0);
    assert.deepEqual(await bars(), of('size', 'bytes').map(format.bytes));
    await go(page, '#/sizes?steps=each&value=count');
    assert.deepEqual(await bars(), of('size', 'allocations').map(format.count));
    await go(page, '#/sizes?steps=each&value=peak');
    assert.deepEqual(await bars(), of('size', 'peak_bytes').map(format.bytes));
    await go(page, '#/sizes?kind=lifetimes');
    assert.deepEqual(await bars(), of('lifetime', 'frees').map(format.count));
    /* A click lists the places; they have what the bar has. */
    await go(page, '#/sizes?steps=each');
    const bar = perl.size_distribution.bars.find((each) => each.least === 17);
    await page.locator('.histogram a', { hasText: '17 to 32 B' }).click();
    const inBar = perl.contexts.map((context) => (context.size_distribution ?? [{ least: context.size.min, bytes: context.bytes }])
        .filter((each) => each.least >= 17 && each.least <= 32).reduce((sum, each) => sum + each.bytes, 0)).filter((bytes) => bytes > 0).sort((a, b) => b - a);
    assert.equal(inBar.reduce((sum, each) => sum + each, 0), bar.bytes);
    assert.match(await text(page, '.histogram-heading'), new RegExp(`^${inBar.length.toLocaleString('en-US')} places? with blocks of 17 to 32 B`));
    assert.equal(await text(page, '.list-rows .row .cell.bar'), format.bytes(inBar[0]));
    assert.match(page.url(), /bar=2-2/);
    /* Keys: the bar has the focus, arrows move, Enter chooses; Back goes back. */
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Enter');
    await page.waitForURL(/bar=1-1/);
    await page.goBack();
    await page.waitForURL(/bar=2-2/);
    await page.locator('.list-rows .row').first().click({ position: { x: 20, y: 10 } });
    await page.locator('.facts a', { hasText: 'sizes' }).click();
    await page.waitForURL(/place=/);
    assert.ok((await bars()).length >= 1);
    await shoot(page, 'sizes');
    await go(page, '#/sizes?bar=7-9&place=99999999');
    assert.match(await text(page, '.notices'), /not in this profile/);
    return page;
});

test('views without data say what would bring it', async () => {
    const page = await open(browser, perlPage);
    for (const [key, words] of [['hot', 'heapwise cc'], ['structs', '--fields'], ['blocks', '--granule=8'], ['allocator', '--mode allocator'], ['keeps', '--keeps'], ['pinned', '--pinned']]) {
        await go(page, `#/${key}`);
        assert.ok((await text(page, '.empty')).includes(words), key);
    }
    await shoot(page, 'without-data');
    const empty = await open(browser, makePage('empty', stream(simpleParts({ format: 1, process: {}, totals: {} }, []))));
    for (const key of ['overview', 'flame', 'contexts', 'hot', 'structs', 'blocks', 'allocator', 'memory', 'keeps', 'pinned'])
        await go(empty, `#/${key}`);
    assert.deepEqual(empty.trouble, []);
    await empty.context().close();
    return page;
});

test('a baseline: what has changed', async () => {
    run(heapwise, 'record', '-q', '-f', '-o', 'less.hwprof', '--', '/usr/bin/perl', '-e', 'my %h; $h{$_} = "x" x 100 for 1..20000; print scalar(%h)');
    const page = await open(browser, view('perl', '--baseline', 'less.hwprof'), {}, '#/flame?value=bytes');
    assert.match(await page.locator('canvas').getAttribute('aria-label'), /since the baseline/);
    const less = report('less');
    const old = less.contexts.reduce((sum, each) => sum + each.bytes, 0);
    const all = perl.contexts.reduce((sum, each) => sum + each.bytes, 0);
    const change = (all - old) / (1 << 20);
    assert.ok((await page.locator('canvas').getAttribute('aria-label')).includes(`+${change.toFixed(1)} MiB`), await page.locator('canvas').getAttribute('aria-label'));
    await shoot(page, 'flame-change');
    await page.locator('.choice:has-text("Widths") select').selectOption('old');
    await frame(page);
    await go(page, '#/overview');
    assert.match(await text(page, '.tiles'), /since the baseline/);
    await go(page, '#/changes?value=bytes');
    const [more, less_] = (await text(page, '.summary')).match(/: ([\d.]+) MiB more, ([\d.]+) [KM]iB less/).slice(1).map(Number);
    assert.ok(more > change - 0.2 && less_ > 0, await text(page, '.summary'));
    await page.locator('.list').focus();
    await page.keyboard.press('Enter');
    await page.waitForSelector('.detail .stack li');
    await shoot(page, 'changes');
    await page.keyboard.press('Enter');
    /* The list is that of heapwise diff, for every value: places, order, figures. */
    for (const sort of ['peak', 'bytes', 'count', 'leaked', 'temporary', 'total-lifetime']) {
        const diff = JSON.parse(run(heapwise, 'diff', '--json', '--sort', sort, 'less.hwprof', 'perl.hwprof'));
        await page.locator('.choice:has-text("Value") select').selectOption(sort);
        await frame(page);
        assert.equal(Number(await page.locator('.list').getAttribute('aria-rowcount')) - 1, diff.places_changed, sort);
        await page.locator('.list').focus();
        await page.keyboard.press('Home');
        await page.evaluate(() => { window.copied = ''; });
        for (const place of diff.places.slice(0, 8)) {
            await page.keyboard.press('c');
            const copied = await page.evaluate(() => window.copied);
            const stack = copied.split('\n').filter((line) => line.startsWith('    ')).map((line) => line.trim());
            assert.deepEqual(stack.map((each, index) => (place.stack[index].function ? each : null)), place.stack.map((each) => each.function ?? null), sort);
            const row = await page.locator('.row.active').innerText();
            const shown = (place.change < 0 ? '−' : '+');
            assert.ok(row.startsWith(shown), `${row} ${place.change}`);
            if (sort === 'count')
                assert.ok(row.includes(Math.abs(place.change).toLocaleString('en-US')), row);
            const state = await page.locator('.row.active .cell').nth(3).innerText();
            assert.equal(state, { appeared: 'new', gone: 'gone' }[place.state] ?? state, row);
            assert.ok(place.state !== 'both' || !['new', 'gone'].includes(state), row);
            await page.keyboard.press('ArrowDown');
        }
    }
    return page;
});

test('a baseline: sandwich, flame graph and search show both values', async () => {
    run(heapwise, 'record', '-q', '-f', '-o', 'fewer.hwprof', '--', '/usr/bin/perl', '-e', 'my %h; $h{$_} = "x" x 100 for 1..5000; print scalar(%h)');
    const less = report('fewer');
    const name = 'Perl_hv_common';
    const sumOf = (profile) => profile.contexts.filter((each) => !each.pool && each.stack.some((at) => at.function === name)).reduce((sum, each) => sum + each.bytes, 0);
    const [old, now] = [sumOf(less), sumOf(perl)];
    assert.ok(old > 0 && now > old);
    const page = await open(browser, view('perl', '--baseline', 'fewer.hwprof'), {}, `#/sandwich?f=${name}&value=bytes`);
    const said = await text(page, '.chosen .summary');
    assert.ok(said.includes(`total (cum) ${shownBytes(now)} (`) && said.includes(`before ${shownBytes(old)}, +`), said);
    assert.ok((await page.locator('.sandwich-body section').nth(0).locator('.row[aria-level="1"] .cell.more').count()) > 0, 'callers have changes');
    assert.equal(await page.locator('.list-head:has-text("change")').count(), 2);
    await go(page, '#/flame?value=bytes');
    const box = await page.locator('canvas').boundingBox();
    await page.mouse.move(box.x + 100, box.y + 5.5 * 19);
    const tip = await text(page, '.tip.shown');
    assert.match(tip, /in the baseline [\d.,]+ [KMG]?i?B: [+−±].* since the baseline[\s\S]*(perl|libperl|libc)[^\n]* · [\d,]+ allocations? on [\d,]+ call stacks?/);
    assert.match(await text(page, '.scale'), /gone, less[\s\S]*more, new/);
    await page.locator('#search').fill(name);
    await page.waitForFunction((sum) => document.querySelector('.matched').textContent.includes(sum), shownBytes(now));
    await shoot(page, 'flame-change-search');
    return page;
});

test('at 800 pixels names have one place, and numbers are not below them', async () => {
    run(heapwise, 'record', '-q', '-f', '-o', 'fewest.hwprof', '--', '/usr/bin/perl', '-e', '1');
    const compared = view('perl', '--baseline', 'fewest.hwprof'); /* the longest heading */
    for (const width of [800, 1000, 1340, 1440, 1530, 1640, 1650]) {
        const narrow = await open(browser, compared, { viewport: { width, height: 800 } });
        const ends = await narrow.locator('nav a').evaluateAll((all) => all.map((tab) => Math.round(tab.getBoundingClientRect().right)));
        assert.ok(ends.length >= 10 && ends.every((right) => right <= width), `${width}: ${ends}`);
        assert.equal(await narrow.evaluate(() => { const nav = document.querySelector('nav'); return nav.scrollWidth - nav.clientWidth; }), 0, `${width}`);
        await narrow.context().close();
    }
    for (const hash of ['#/contexts', '#/contexts?by=function']) {
        const page = await open(browser, perlPage, { viewport: { width: 800, height: 800 } }, hash);
        const rows = await page.locator('.row').evaluateAll((all) => all.map((row) => [...row.querySelectorAll(':scope > .cell')].map((cell) => { const box = cell.getBoundingClientRect(); return [Math.round(box.left), Math.round(box.right)]; })));
        assert.ok(rows.length > 10);
        for (const cells of rows) {
            assert.deepEqual(cells.at(-1), rows[0].at(-1));
            assert.ok(cells.at(-1)[0] >= cells.at(-2)[1] - 1 && cells.at(-1)[1] <= 800 && cells.at(-1)[1] - cells.at(-1)[0] >= 300, JSON.stringify(cells));
        }
        await page.context().close();
    }
});

test('colours of modules differ as far as the legend names them', async () => {
    const page = await open(browser, perlPage, {}, '#/flame?colors=module&value=count');
    const shown = await page.locator('.scale .meaning').evaluateAll((all) => all.map((each) => [each.textContent, getComputedStyle(each.querySelector('i')).backgroundColor, each.getBoundingClientRect().right]));
    assert.ok(shown.length >= 2);
    assert.equal(new Set(shown.map(([, color]) => color)).size, shown.length);
    assert.ok(shown.every(([, , right]) => right <= 1360), 'the legend is not cut off');
    return page;
});

/* ---- what is resident, and whose it is ---- */

const mib = (value) => Math.round(value * (1 << 20));

test('resident memory: moments are named, Heapwise’s own is apart', async () => {
    const moment = (name, time, live, heap, own) => ({ moment: name, time_ns: time, live_bytes: mib(live), heap_bytes: mib(heap), file_bytes: mib(3.1), stack_bytes: 65536, runtime_bytes: mib(own), other_bytes: 4096, swap_bytes: 0,
        rss_bytes: mib(heap) + mib(3.1) + 65536 + mib(own) + 4096,
        parts: { requested: mib(live), around: Math.max(0, mib(heap) - mib(live)), untouched: Math.min(0, mib(heap) - mib(live)), files: mib(3.1), stacks: 65536, heapwise: mib(own), other: 4096 } });
    const made = { ...minimal, process: { ...minimal.process, duration_ns: 2e9 }, totals: { ...minimal.totals, peak_bytes: mib(58.1), peak_time_ns: 1.1e9, peak_rss_bytes: mib(61) },
        memory: [moment('peak', 959e6, 32.9, 53.9, 2.5), moment('end', 2e9, 12, 10, 2.75)],
        memory_parts: [['requested', 'Heap blocks, as requested'], ['around', 'Heap around them'], ['untouched', 'Not in memory: not written yet, or released'], ['files', 'Files'], ['stacks', 'Stacks'], ['heapwise', 'Heapwise’s own memory'], ['other', 'Other']].map(([part, title]) => ({ part, title })),
        timeline: Array.from({ length: 9 }, (_, i) => ({ time_ns: i * 25e7, live_bytes: mib(i * 6), rss_bytes: mib(8 + i * 6), allocations: i, frees: 0 })) };
    const page = await open(browser, makePage('memory', stream(simpleParts(made, [['f', 'main']]))));
    const said = await page.locator('.moment p').allInnerTexts();
    assert.equal(said[0], 'Near the peak (959 ms into the run, 32.9 MiB of 58.1 MiB live): 57.1 MiB resident, 59.6 MiB with Heapwise’s own memory');
    assert.match(said[1], /^At the end \(2\.00 s into the run, 12\.0 MiB live\): 13\.2 MiB resident, 15\.9 MiB with/);
    const parts = await page.locator('.moment').first().locator('.legend li').allInnerTexts();
    for (const wanted of ['Heap blocks, as requested 32.9 MiB', 'Heap around them 21.0 MiB', 'Heapwise’s own memory 2.5 MiB'])
        assert.ok(parts.includes(wanted), `${wanted} in ${parts.join('; ')}`);
    const after = await page.locator('.moment').nth(1).locator('.legend li').allInnerTexts();
    for (const wanted of ['Heap blocks, as requested 12.0 MiB', 'Not in memory: not written yet, or released 2.0 MiB'])
        assert.ok(after.includes(wanted), `${wanted} in ${after.join('; ')}`);
    const widths = await page.locator('.moment').nth(1).locator('.strip div').evaluateAll((all) => all.map((each) => parseFloat(each.style.width)));
    assert.ok(Math.abs(widths.reduce((sum, each) => sum + each, 0) - 100) < 0.01, `the strip is all of RSS: ${widths}`); // what was never touched is no part of it
    assert.match(await page.locator('.moment .own').first().evaluate((each) => getComputedStyle(each).backgroundImage), /repeating-linear-gradient/);
    assert.match(await text(page, '.tiles'), /about 58\.5 MiB[\s\S]*61\.0 MiB with 2\.5 MiB of Heapwise’s own/);
    assert.match(await text(page, '.own-memory'), /2\.5 MiB at 959 ms, 2\.8 MiB at 2\.00 s; estimated in between/);
    assert.match(await text(page, '.plot'), /resident, the program’s[\s\S]*with Heapwise’s own/);
    for (const [width, colorScheme] of [[800, 'light'], [1400, 'light'], [800, 'dark'], [1400, 'dark']]) {
        const other = await open(browser, path.join(work, 'memory.html'), { viewport: { width, height: 900 }, colorScheme });
        await other.locator('.memory').scrollIntoViewIfNeeded();
        await shoot(other, `memory-${width}-${colorScheme}`);
        await other.context().close();
    }
    /* A real run: the sums are those of the report. */
    const real = await open(browser, perlPage);
    const bytes = (value) => (value >= 1 << 20 ? `${(value / (1 << 20)).toFixed(1)} MiB` : `${(value / 1024).toFixed(1)} KiB`);
    const lines = await real.locator('.moment p').allInnerTexts();
    assert.equal(lines.length, perl.memory.length);
    for (const each of perl.memory)
        assert.ok(lines.some((line) => line.includes(`${bytes(each.rss_bytes - each.runtime_bytes)} resident, ${bytes(each.rss_bytes)} with`)), `${JSON.stringify(each)} in ${lines.join('; ')}`);
    await real.context().close();
    return page;
});

test('memory: parts over time, and who mapped it, with the call stacks of mmap', async () => {
    if (!compiled('ledger', '../programs/ledger.c', '-g', '-D_GNU_SOURCE', '-I', path.join(source, 'tests/programs'), '-pthread'))
        return console.log('  not looked at: clang cannot build it');
    run(heapwise, 'record', '-q', '-f', '-o', 'ledger.hwprof', '--', './ledger');
    const told = report('ledger');
    const page = await open(browser, view('ledger'), {}, '#/memory');
    await page.waitForSelector('.plot canvas');
    const read = (text) => { const [value, unit] = text.split(' '); return Number(value) * { B: 1, KiB: 1024, MiB: 1 << 20 }[unit]; };
    /* The last column is the end: every part, and their sum. */
    const end = told.memory.find(({ moment }) => moment === 'end');
    const rows = await page.locator('.parts tbody tr').evaluateAll((all) => all.map((row) => [row.cells[0].textContent, row.cells[row.cells.length - 1].textContent]));
    for (const { part, title } of told.memory_parts.filter((each) => told.memory.some((moment) => moment.parts[each.part])))
        assert.ok(rows.some(([name, bytes]) => name === title && Math.abs(read(bytes) - end.parts[part]) <= (1 << 20) / 19), `${title} ${end.parts[part]} in ${JSON.stringify(rows)}`);
    assert.ok(rows.some(([name, bytes]) => /RSS/.test(name) && Math.abs(read(bytes) - end.rss_bytes) < end.rss_bytes / 100));
    /* What the program has mapped itself: 14 MiB are resident of what map_known took, and its call stack opens. */
    await page.locator('.owners select').selectOption('end');
    const known = page.locator('.owners').first().locator('tbody tr', { hasText: 'mapped in map_known' });
    assert.equal(await known.locator('td').first().textContent(), '14.0 MiB');
    await known.locator('summary').click();
    const frames = await known.locator('.stack li').allInnerTexts();
    assert.match(frames[0], /^map_known\s*ledger\.c:\d+/);
    assert.ok(frames.some((each) => each.startsWith('main')), frames.join('; '));
    const over = page.locator('.owners').nth(1).locator('tbody tr', { hasText: 'map_known' });
    assert.deepEqual((await over.locator('td').allInnerTexts()).slice(0, 4), ['24.0 MiB', '18.0 MiB', '24.0 MiB', '1']);
    for (const [width, colorScheme] of [[800, 'light'], [1400, 'light'], [800, 'dark'], [1400, 'dark']]) {
        const other = await open(browser, path.join(work, 'ledger.html'), { viewport: { width, height: 900 }, colorScheme }, '#/memory');
        assert.ok(await other.locator('.plot canvas').evaluate((each) => each.getBoundingClientRect().right) <= width);
        await shoot(other, `ledger-${width}-${colorScheme}`);
        await other.context().close();
    }
    return page;
});

/* ---- one function, groups ---- */

const shownBytes = (value) => (value >= 1023.95 * 1024 ? `${(value / (1 << 20)).toFixed(1)} MiB` : value >= 1023.95 ? `${(value / 1024).toFixed(1)} KiB` : `${value} B`);
/* Places as the page has them: without pools, and stacks without the allocation wrappers at their ends. */
const unwrapped = (stack) => stack.slice(Math.max(0, stack.findIndex(({ wrapper }) => !wrapper)));
const counted = perl.contexts.filter((each) => !each.pool).map((each) => ({ ...each, stack: unwrapped(each.stack) }));
const cumOf = (name) => counted.filter((each) => each.stack.some((at) => at.function === name)).reduce((sum, each) => sum + each.bytes, 0);
const selfOf = (name) => counted.filter((each) => each.stack[0]?.function === name).reduce((sum, each) => sum + each.bytes, 0);

test('sandwich: callers above, callees below, with self and cum', async () => {
    const chosen = 'Perl_newSVsv_flags Perl_sv_setsv_flags Perl_hv_common S_hv_common Perl_pp_helem Perl_runops_standard'.split(' ').find((each) => cumOf(each));
    const page = await open(browser, perlPage, {}, `#/sandwich?f=${chosen}&value=bytes`);
    const said = await text(page, '.chosen .summary');
    const stacks = counted.filter((each) => each.stack.some((at) => at.function === chosen)).length;
    assert.ok(said.includes(`total (cum) ${shownBytes(cumOf(chosen))}`), `${shownBytes(cumOf(chosen))} in ${said}`);
    assert.ok(said.includes(`on ${stacks.toLocaleString('en-US')} call stack`), said);
    /* Callers one above the function, outermost call: their shares are all there is. */
    const tops = (index) => page.locator('.sandwich-body section').nth(index).locator('.row[aria-level="1"]').evaluateAll((rows) => rows.map((row) => [...row.querySelectorAll('.cell')].map((cell) => cell.textContent)));
    const wanted = new Map();
    for (const each of counted) {
        const at = each.stack.findLastIndex((frame) => frame.function === chosen);
        if (at >= 0 && each.stack[at + 1]?.function)
            wanted.set(each.stack[at + 1].function, (wanted.get(each.stack[at + 1].function) ?? 0) + each.bytes);
    }
    const callers = await tops(0);
    const [most, bytes] = [...wanted].sort((a, b) => b[1] - a[1])[0];
    assert.ok(callers[0].at(-1).includes(most), `${most} in ${callers[0]}`);
    assert.equal(callers[0][0], shownBytes(bytes));
    const share = (cells) => parseFloat(cells[1].replace('<', ''));
    assert.ok(Math.abs(callers.reduce((sum, cells) => sum + share(cells), 0) - 100) < 1, callers.join('; '));
    await page.getByRole('treegrid', { name: 'Callees' }).focus();
    await page.keyboard.press('End');
    await shoot(page, 'sandwich');
    /* A row opens, and leads on. */
    const next = (await tops(2))[0].at(-1).replace(/^[▾▸]/, '');
    await page.locator('.sandwich-body section').nth(2).locator('.row a').first().click();
    await frame(page);
    assert.equal(await text(page, '.chosen h3 .name'), next);
    await page.locator('#search').fill('hv_');
    await page.waitForSelector('.matches a');
    assert.match(await text(page, '.matches'), /hv_/);
    for (const [width, colorScheme] of [[800, 'light'], [1400, 'dark']]) {
        const other = await open(browser, perlPage, { viewport: { width, height: 900 }, colorScheme }, `#/sandwich?f=${chosen}&value=bytes`);
        assert.ok(await other.evaluate(() => document.querySelector('main').scrollWidth <= document.querySelector('main').clientWidth));
        await shoot(other, `sandwich-${width}-${colorScheme}`);
        await other.context().close();
    }
    return page;
});

/* Stacks of a tree that is walked by itself: left and right, to any depth. */
const walks = Array.from({ length: 3000 }, (_, i) => ['new_leaf', ...[...(i + 1).toString(2)].flatMap((digit) => [digit === '0' ? 'left' : 'right', 'walk']), 'build', 'main']);

test('recursion is folded: places, sandwich, flame graph', async () => {
    const page = await open(browser, makePage('walks', stream(simpleParts(minimal, walks))), {}, '#/contexts');
    const sum = 100 * walks.length * (walks.length + 1) / 2;
    assert.match(await text(page, '.summary'), /^[12] places? \(3,000 call stacks\)/);
    const rows = Number(await page.locator('.list').getAttribute('aria-rowcount')) - 1;
    assert.ok(rows <= 4, `${rows} rows`);
    await page.locator('.list').focus();
    await page.keyboard.press('Enter');
    assert.match(await text(page, '.detail .caption'), /call stacks that differ only in recursion/);
    await shoot(page, 'recursion-places');
    await go(page, '#/contexts?by=stack');
    assert.match(await text(page, '.summary'), /^3,000 call stacks/);
    await go(page, '#/sandwich?f=walk&value=bytes');
    assert.ok((await text(page, '.chosen .summary')).includes(`total (cum) ${shownBytes(sum)} (100 %), self 0 B`), await text(page, '.chosen .summary'));
    const deep = () => page.locator('.sandwich-body .row').count();
    assert.ok(await deep() < 12, `${await deep()} rows`);
    await go(page, '#/flame?value=bytes');
    await page.locator('canvas').focus();
    const depth = async () => {
        let last = '';
        let count = 0;
        for (; count < 60; count++) {
            await page.keyboard.press('ArrowDown');
            const label = await page.locator('canvas').getAttribute('aria-label');
            if (label === last)
                break;
            last = label;
        }
        return count;
    };
    assert.ok(await depth() <= 6);
    await page.locator('.choice:has-text("Recursion") select').selectOption('all');
    await page.locator('canvas').focus();
    assert.ok(await depth() > 12);
    assert.match(page.url(), /recursion=all/);
    return page;
});

test('places by function, file, module, size: cum and self; any number is a column', async () => {
    const page = await open(browser, perlPage, { viewport: { width: 800, height: 700 } }, '#/contexts?by=function&columns=bytes&sort=cum:bytes');
    const cells = (row) => page.locator('.list-rows .row').nth(row).locator('.cell').allInnerTexts();
    const names = [...new Set(counted.flatMap((each) => each.stack.map((at) => at.function).filter(Boolean)))];
    for (let row = 0; row < 8; row++) {
        const [whole, own, title] = await cells(row);
        const found = names.find((each) => title.replace('⇅', '').trim().startsWith(`${each}\n`) || title.replace('⇅', '').trim() === each || title.replace('⇅', '').startsWith(each));
        if (!found)
            continue;
        const exact = names.filter((each) => title.replace('⇅', '').startsWith(each)).sort((a, b) => b.length - a.length)[0];
        assert.equal(whole, shownBytes(cumOf(exact)), exact);
        assert.equal(own, shownBytes(selfOf(exact)), exact);
    }
    await page.getByRole('button', { name: /^self bytes/ }).click();
    const best = names.map((each) => [each, selfOf(each)]).sort((a, b) => b[1] - a[1])[0];
    assert.ok((await cells(0))[2].includes(best[0]), `${best} in ${await cells(0)}`);
    await page.locator('.list').focus();
    await page.keyboard.press('Enter');
    assert.match(await text(page, '.detail'), /call stacks? allocates? here[\s\S]*Callers and callees/);
    /* Every value is a column; the name stays. */
    for (const columns of ['', '&columns=peak+bytes+count+leaked+temporary+realloc+lifetime-or-age+size+frees+size-min+size-max+first-ns+lifetime-max-ns']) {
        await go(page, `#/contexts?by=function${columns}`);
        const room = await page.locator('.list').boundingBox();
        const name = await page.locator('.list-rows .name-cell').first().boundingBox();
        assert.ok(name.x >= room.x && name.x + name.width <= room.x + room.width + 1 && name.width >= 180, JSON.stringify([name, room]));
        await shoot(page, `groups-800${columns ? '-all' : ''}`);
    }
    assert.ok((await page.locator('.menu-body input').count()) > 15);
    /* Numbers of the table of numbers that no report lists. */
    for (const [column, key] of [['lifetime-overlaps', 'lifetime_overlaps'], ['same-alloc-cpu', 'same_alloc_cpu']]) {
        await go(page, `#/contexts?by=stack&columns=${column}&sort=${column}`);
        const most = Math.max(...perl.contexts.map((each) => each[key] ?? 0));
        assert.ok(most > 0, key);
        assert.equal((await cells(0))[0], most.toLocaleString('en-US'), key);
    }
    await go(page, '#/contexts?by=stack&columns=size-max+frees&sort=size-max');
    const largest = Math.max(...perl.contexts.map((each) => each.size?.max ?? 0));
    assert.ok((await cells(0)).includes(shownBytes(largest)), `${shownBytes(largest)} in ${await cells(0)}`);
    await go(page, '#/contexts?by=module&columns=bytes&sort=cum:bytes');
    const modules = new Map();
    for (const each of counted)
        for (const module of new Set(each.stack.map((at) => at.module?.split('/').pop())))
            modules.set(module, (modules.get(module) ?? 0) + each.bytes);
    for (let row = 0; row < Math.min(3, await page.locator('.list-rows .row').count()); row++) {
        const [whole, , title] = await cells(row);
        const module = [...modules.keys()].find((each) => each && title.startsWith(each));
        assert.ok(!module || whole === shownBytes(modules.get(module)), `${title} ${whole}`);
    }
    for (const by of ['file', 'line', 'size', 'module']) {
        await page.locator('.choice:has-text("By") select').selectOption(by);
        await frame(page);
        assert.ok(page.url().includes(`by=${by}`));
        assert.ok(await page.locator('.list-rows .row').count() > 0, by);
    }
    await go(page, '#/contexts?by=size&columns=count');
    const rows = await page.locator('.list-rows .row').evaluateAll((all) => all.map((row) => Number(row.querySelector('.cell').textContent.replaceAll(',', ''))));
    assert.equal(rows.reduce((sum, each) => sum + each, 0), counted.reduce((sum, each) => sum + each.allocations, 0));
    for (const [width, colorScheme] of [[1400, 'light'], [1400, 'dark'], [800, 'dark']]) {
        const other = await open(browser, perlPage, { viewport: { width, height: 900 }, colorScheme }, '#/contexts?by=function');
        await shoot(other, `groups-${width}-${colorScheme}`);
        await other.context().close();
    }
    if (shapes8) {
        const typed = await open(browser, shapes8.page, {}, '#/contexts?by=type&columns=bytes');
        const node = shapes8.report.contexts.filter((each) => each.type === 'node' && !each.pool).reduce((sum, each) => sum + each.bytes, 0);
        assert.ok((await typed.locator('.list-rows .row').allInnerTexts()).some((row) => row.includes('node') && row.includes(shownBytes(node))));
        await typed.context().close();
    }
    return page;
});

/* ---- the flame graph as a tool ---- */

test('flame graph: sum of a search, steps back, tooltips, colours, pictures', async () => {
    const page = await open(browser, perlPage, { viewport: { width: 1400, height: 900 }, acceptDownloads: true }, '#/flame?value=bytes');
    const label = () => page.locator('canvas').getAttribute('aria-label');
    await page.locator('#search').fill('hv_common');
    const hit = counted.filter((each) => each.stack.some((at) => at.function?.includes('hv_common'))).reduce((sum, each) => sum + each.bytes, 0);
    await page.waitForFunction((sum) => document.querySelector('.matched').textContent.includes(sum), `: ${shownBytes(hit)}, `);
    await page.locator('#search').fill('');
    await page.locator('#search').blur();
    await page.locator('canvas').focus();
    const zooms = [await label()];
    for (let i = 0; i < 2; i++) {
        await page.keyboard.press('ArrowDown');
        await page.keyboard.press('ArrowDown');
        await page.keyboard.press('Enter');
        zooms.push(await label());
    }
    for (const wanted of [zooms[1], zooms[0]]) {
        await page.goBack();
        await page.waitForFunction((text) => document.querySelector('canvas')?.getAttribute('aria-label') === text, wanted);
    }
    const box = await page.locator('canvas').boundingBox();
    await page.mouse.move(box.x + 30, box.y + 3.5 * 19);
    assert.match(await text(page, '.tip.shown'), /[\d,]+ allocations? on [\d,]+ call stacks?/);
    await page.mouse.move(box.x + 30, box.y - 30);
    /* The legend has the colours of the boxes. */
    for (const colors of ['kind', 'module']) {
        await page.locator('.choice:has-text("Colours") select').selectOption(colors);
        await frame(page);
        const swatches = await page.locator('.scale i').evaluateAll((all) => all.map((each) => getComputedStyle(each).backgroundColor));
        const boxes = await page.evaluate(() => {
            const canvas = document.querySelector('canvas');
            const context = canvas.getContext('2d');
            return [1, 2, 3, 4, 5].map((row) => `rgb(${[...context.getImageData(2, row * 19 * devicePixelRatio + 3, 1, 1).data.slice(0, 3)].join(', ')})`);
        });
        if (colors === 'module')
            assert.ok(boxes.every((each) => swatches.includes(each)), `${boxes} in ${swatches}`);
        else { /* shades between those of the legend */
            const [least, , most] = swatches.map((each) => each.match(/\d+/g).map(Number));
            const between = (color) => color.match(/\d+/g).map(Number).every((value, at) => value >= Math.min(least[at], most[at]) - 12 && value <= Math.max(least[at], most[at]) + 12);
            assert.ok(boxes.slice(2).some(between), `${boxes} in ${swatches}`);
        }
        await shoot(page, `flame-colors-${colors}`);
    }
    for (const kind of ['SVG', 'PNG']) {
        const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: kind }).click()]);
        const file = path.join(work, download.suggestedFilename());
        await download.saveAs(file);
        const saved = readFileSync(file);
        if (kind === 'SVG') {
            assert.match(file, /\.svg$/);
            assert.match(saved.toString(), /^<svg [\s\S]*<title>all: [\s\S]*main[\s\S]*<\/svg>$/);
        } else {
            assert.equal(saved.subarray(1, 4).toString(), 'PNG');
            assert.ok(saved.readUInt32BE(16) >= box.width && saved.readUInt32BE(20) > 100);
        }
    }
    await page.locator('canvas').focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('s');
    await page.waitForSelector('main.sandwich');
    if (shapes8) {
        const sourced = await open(browser, shapes8.page, {}, '#/flame?value=bytes');
        await sourced.locator('#search').fill('make_node');
        await sourced.locator('canvas').focus();
        for (let i = 0; i < 12 && !(await sourced.locator('.flame-said .source').innerText()).includes('shapes.cpp:'); i++)
            await sourced.keyboard.press('ArrowDown');
        assert.match(await text(sourced, '.flame-said .source'), /shapes\.cpp:\d+/);
        await sourced.context().close();
    }
    return page;
});

test('wrappers of the allocator are folded, and shown by a switch', async () => {
    const parts = simpleParts(minimal, [['xmalloc', 'add', 'main'], ['xmalloc', 'put', 'main'], ['xmalloc']]);
    const frames = parts.find(([name]) => name === 'location.frames')[2].length;
    const names = parts.find(([name]) => name === 'frame.function')[2];
    const wrapper = parts.find(([name]) => name === 'strings')[2].indexOf('xmalloc') + 1;
    assert.equal(names.length, frames);
    parts.find(([name]) => name === 'context.headline')[2] = [1, 1, 0];
    const page = await open(browser, makePage('wrappers', stream([...parts, ['frame.wrapper', 'numbers', names.map((each) => Number(each === wrapper))]])), {}, '#/contexts?by=function&columns=bytes');
    const rows = await page.locator('.list-rows .row').allInnerTexts();
    assert.ok(/^200 B\s+200 B/.test(rows.find((row) => row.includes('put'))), rows.join('; '));
    await go(page, '#/flame?value=bytes&shape=inverted');
    await page.locator('canvas').focus();
    await page.keyboard.press('ArrowDown');
    assert.doesNotMatch(await page.locator('canvas').getAttribute('aria-label'), /^xmalloc: 600/);
    await page.locator('.choice:has-text("Wrappers") select').selectOption('shown');
    await page.locator('canvas').focus();
    await page.keyboard.press('ArrowDown');
    assert.match(await page.locator('canvas').getAttribute('aria-label'), /^xmalloc: 600 B/);
    return page;
});

/* ---- source lines ---- */

test('threads: one row for numbered ones, with what all of them allocated, and where they were started', async () => {
    if (tries('c++', '-O1', '-g', '-pthread', path.join(source, 'tests/programs/thread_pool.cpp'), '-o', 'pool').status)
        return console.log('  not looked at: there is no c++');
    run(heapwise, 'record', '-q', '-f', '-o', 'pool.hwprof', '--', './pool');
    const page = await open(browser, view('pool'));
    const row = page.locator('.threads tbody tr', { hasText: 'worker-*' });
    assert.equal(await row.count(), 1);
    assert.match(await row.innerText(), /^293.0 KiB\s.*300.*worker-\*, serve\(int\) \(300 threads\)/s);
    await row.locator('summary').click();
    assert.match(await row.locator('.started').first().innerText(), /^Started by the main thread at start_pool\(.*\(thread_pool\.cpp:\d+\)$/);
    assert.match(await row.locator('.links').innerText(), /serve\(int\)/);
    return page;
});

/* The groups of report --by line, by file and line. */
function lineSums(name, value) {
    const { groups } = JSON.parse(run(heapwise, 'report', '--json', '--by', 'line', '--value', value, `${name}.hwprof`));
    return new Map(groups.rows.filter((row) => row.line).map((row) => [`${row.file}:${row.line}`, row]));
}

test('source: lines of the program with the sums of the table and of the terminal', async () => {
    if (tries('c++', '-O1', '-g', '-pthread', path.join(source, 'tests/page/shapes.cpp'), '-o', 'plain').status)
        return console.log('  not looked at: there is no c++');
    run(heapwise, 'record', '-q', '-f', '-o', 'plain.hwprof', '--', './plain');
    const file = view('plain', '--source');
    const lines = readFileSync(path.join(source, 'tests/page/shapes.cpp'), 'utf8').split('\n');
    const page = await open(browser, file, { viewport: { width: 1400, height: 900 } }, '#/source?value=bytes');
    const rows = () => page.locator('.list-rows .row').evaluateAll((all) => all.map((row) => [...row.querySelectorAll('.cell')].map((cell) => cell.textContent)).filter((cells) => cells.length === 4));
    for (const value of ['bytes', 'count']) {
        await page.locator('.choice:has-text("Value") select').selectOption(value);
        await frame(page);
        const sums = lineSums('plain', value);
        const shown = (number) => (value === 'bytes' ? shownBytes(number) : number.toLocaleString('en-US'));
        let counted = 0;
        for (const [cum, self, number, code] of await rows()) {
            assert.equal(code, lines[number - 1].replaceAll('\t', '        '), number);
            const row = [...sums].find(([key]) => key.endsWith(`/shapes.cpp:${number}`))?.[1];
            assert.deepEqual([cum, self], row ? [shown(row.total), shown(row.self)] : ['', ''], `${value} of line ${number}`);
            counted += row ? 1 : 0;
        }
        assert.ok(counted >= 5, `${counted} lines`);
        /* The table by line has the same. */
        await go(page, `#/contexts?by=line&columns=${value}`);
        for (const row of await page.locator('.list-rows .row').allInnerTexts()) {
            const [cum, self, title] = row.split(/\s*\n\s*/);
            const wanted = [...sums].find(([key]) => title?.startsWith('shapes.cpp:') && key.endsWith(`/${title}`))?.[1];
            assert.ok(!wanted || (cum === shown(wanted.total) && self === shown(wanted.self)), row);
        }
        await go(page, `#/source?value=${value}`);
    }
    /* From a place, a function and a line to its source. */
    const made = report('plain').contexts.flatMap((each) => each.stack).find((each) => each.function?.startsWith('make_node')).function;
    await go(page, `#/source?f=${made}`);
    assert.match(page.url(), /file=.*shapes\.cpp&line=\d+|line=\d+&file=/);
    assert.match(await text(page, '.row.wanted'), /new node/);
    await page.locator('.row.wanted').click();
    assert.match(await text(page, '.detail'), /1 call stack allocates here[\s\S]*make_node/);
    await go(page, '#/contexts?by=function&q=make_node');
    await page.locator('.list-rows .row', { hasText: 'make_node' }).first().click();
    await page.locator('.detail .links a', { hasText: 'Source' }).click();
    await page.waitForSelector('main.source .row.wanted');
    await go(page, '#/contexts?by=stack&q=make_node');
    await page.locator('.list-rows .row').first().click();
    await page.locator('.stack li.head .place a').click();
    await page.waitForSelector('main.source .row.wanted');
    assert.match(await text(page, '.row.wanted'), /new node/);
    await go(page, `#/sandwich?f=${made}`);
    await page.locator('.chosen a', { hasText: 'Source' }).click();
    await page.waitForSelector('main.source .row.wanted');
    for (const [hash, words] of [['#/source?file=nowhere.c', 'no source of “nowhere.c”'], ['#/source?f=nobody', 'no function “nobody”'], ['#/source?line=99999', 'Line 99999 of shapes.cpp is not in this page'], ['#/source?value=colour', 'no value “colour”']]) {
        await go(page, hash);
        assert.ok((await text(page, '.notices')).includes(words), `${hash}: ${await text(page, '.notices')}`);
    }
    for (const [width, colorScheme] of [[800, 'light'], [1400, 'dark'], [800, 'dark'], [1400, 'light']]) {
        const other = await open(browser, file, { viewport: { width, height: 900 }, colorScheme }, '#/source?value=bytes&line=49');
        await frame(other);
        assert.ok(await other.evaluate(() => document.querySelector('main').scrollWidth <= document.querySelector('main').clientWidth));
        await shoot(other, `source-${width}-${colorScheme}`);
        await other.context().close();
    }
    /* Without the option there is nothing of it. */
    const without = await open(browser, view('plain'), {}, '#/source');
    assert.match(await text(without, '.empty'), /heapwise view --source/);
    await go(without, '#/contexts?by=stack');
    await without.locator('.list-rows .row').first().click();
    assert.equal(await without.locator('.stack .place a').count(), 0);
    await without.context().close();
    return page;
});

test('source: hostile text, other files and files that are gone', async () => {
    const code = 'int main(void)\n{\n    extern void *malloc(unsigned long);\n    static void *volatile kept;\n    kept = malloc(1000);\n    return kept == 0;\n}\n';
    mkdirSync(path.join(work, 'odd'), { recursive: true });
    writeFileSync(path.join(work, 'odd/odd.c'), code);
    if (tries('cc', '-g', '-O0', path.join(work, 'odd/odd.c'), '-o', 'oddities').status)
        return console.log('  not looked at: there is no cc');
    run(heapwise, 'record', '-q', '-f', '-o', 'oddities.hwprof', '--', './oddities');
    const other = path.join(work, 'elsewhere');
    mkdirSync(other, { recursive: true });
    const mapping = `${path.join(work, 'odd')}=${other}`;
    const bad = ['</script><img src=x onerror=alert(1)>', '"\'`${alert(2)} @HEAPWISE-PROFILES-2@ &lt;b>', 'safe \u202e gnp.exe \u2066\u0000'.replace('\u0000', ''), 'x'.repeat(100000), '    kept = malloc(1000);<b>'];
    writeFileSync(path.join(other, 'odd.c'), Buffer.concat([Buffer.from(bad.join('\n')), Buffer.from([10, 0xff, 0xfe, 0x1b, 10])]));
    const file = view('oddities', '--source', '--source-path', mapping);
    assert.ok(!readFileSync(file, 'latin1').includes('alert(1)'));
    const page = await open(browser, file, {}, '#/source?line=5');
    const shown = await text(page, '.list-rows');
    for (const part of ['</script><img src=x onerror=alert(1)>', '@HEAPWISE-PROFILES-2@ &lt;b>', 'safe \\u202e gnp.exe \\u2066', 'kept = malloc(1000);<b>', '\\xff\\xfe\\x1b'])
        assert.ok(shown.includes(part), `${part} in ${shown.slice(0, 900)}`);
    assert.ok(shown.length < 3000, `${shown.length}`);
    assert.match(await text(page, '.warning'), /changed after oddities was built/);
    assert.match(await text(page, '.summary'), /elsewhere\/odd\.c.*built as .*odd\/odd\.c/);
    await unharmed(page);
    await shoot(page, 'source-hostile');
    await page.context().close();
    rmSync(path.join(other, 'odd.c'));
    const gone = await open(browser, view('oddities', '--source', '--source-path', mapping), {}, '#/source');
    assert.ok((await text(gone, '.warning')).includes(`tried ${path.join(other, 'odd.c')} (No such file or directory)`), await text(gone, '.warning'));
    return gone;
});

test('what is left out and what is folded is said, and totals stay the program’s', async () => {
    const ignored = perl.contexts.flatMap((each) => each.stack).find((each) => /^Perl_[a-z_]+$/.test(each.function ?? '')).function;
    const rules = ['--ignore', `^${ignored}$`, '--hide', '^Perl_runops'];
    const page = await open(browser, view('perl', ...rules), { viewport: { width: 1400, height: 900 } });
    /* The sentences are those of the terminal. */
    const told = run(heapwise, 'report', '--section', 'summary', ...rules, 'perl.hwprof').replace(/\s+/g, ' ');
    const sentences = await page.locator('.selection li').allInnerTexts();
    for (const sentence of sentences.slice(0, 2))
        assert.ok(told.includes(sentence), `${sentence} in ${told}`);
    assert.match(sentences[0], /^Left out: .* of the bytes at the peak .*, by ignore '.*'\. Totals include what is left out\.$/);
    assert.match(sentences[1], /^Frames are hidden in .* by hide '\^Perl_runops'\.$/);
    assert.ok((await text(page, '.tiles')).includes(perl.totals.allocations.toLocaleString('en-US')));
    /* Shares are of the program's total, also where places are missing. */
    const shares = await page.locator('.functions tbody tr').evaluateAll((all) => all.map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent)));
    const peak = perl.totals.peak_bytes;
    const bytes = (said) => { const [number, unit] = said.replaceAll(',', '').split(' '); return Number(number) * 1024 ** ['B', 'KiB', 'MiB', 'GiB'].indexOf(unit); };
    for (const [value, share] of shares)
        assert.ok(Math.abs(parseFloat(share.replace('<', '')) - (100 * bytes(value)) / peak) < 0.3, `${share} of ${value} in ${peak}`);
    for (const hash of ['#/contexts', '#/flame', '#/sandwich', '#/hot']) {
        await go(page, hash);
        if (!(await page.locator('main .empty').count()))
            assert.ok((await text(page, 'p.left-out')).includes(sentences[0]), hash);
    }
    await shoot(page, 'left-out');
    const all = await open(browser, perlPage);
    assert.equal(await all.locator('.selection li:has-text("Left out")').count(), 0);
    await go(all, '#/contexts');
    assert.equal(await all.locator('p.left-out').count(), 0);
    await all.context().close();
    return page;
});

test('stacks show wrappers as folded, and unfold them', async () => {
    const parts = simpleParts(minimal, [['inner_alloc', 'xmalloc', 'add', 'main'], ['xmalloc', 'put', 'main']]);
    const names = parts.find(([name]) => name === 'frame.function')[2];
    const strings = parts.find(([name]) => name === 'strings')[2];
    const wrappers = names.map((each) => Number(['xmalloc', 'inner_alloc'].includes(strings[each - 1])));
    parts.find(([name]) => name === 'context.headline')[2] = [2, 1];
    const page = await open(browser, makePage('folded', stream([...parts, ['frame.wrapper', 'numbers', wrappers]])), {}, '#/contexts?by=stack&q=add');
    await page.locator('.list-rows .row').first().click();
    assert.match(await text(page, '.stack li.wrappers summary'), /2 allocation wrappers folded: inner_alloc, xmalloc/);
    assert.equal(await page.locator('.stack li.head').innerText(), 'add');
    assert.equal(await page.locator('.wrappers li').first().isVisible(), false);
    await page.locator('.stack li.wrappers summary').click();
    assert.deepEqual(await page.locator('.wrappers li').allInnerTexts(), ['inner_alloc', 'xmalloc']);
    await go(page, '#/overview');
    assert.match(await text(page, '.selection'), /wrappers are folded[\s\S]*(xmalloc|inner_alloc)[\s\S]*view --no-fold/);
    return page;
});

/* ---- small things ---- */

test('structs: those that cost most first; places of one name are one link', async () => {
    const struct = (name, lines, accesses) => ({ struct: name, size: 16, reads: accesses, writes: 0, lines_brought_in: lines, contexts: [1, 2, 3, 4, 5], fields: [{ name: 'a', offset: 0, size: 8, reads: accesses }] });
    const made = { ...minimal, fields: [struct('busy', 10, 9000), struct('costly', 5000, 10)], findings: [{ kind: 'x', rank: 1, title: 'Five places', contexts: [1, 2, 3, 4, 5] }] };
    const page = await open(browser, makePage('structs', stream(simpleParts(made, Array.from({ length: 5 }, (_, i) => ['insert', `caller${i}`, 'main'])))), {}, '#/structs');
    assert.match(await text(page, '[role=option]'), /costly/);
    assert.deepEqual(await page.locator('.struct .plain li').allInnerTexts(), ['insert (5 places)']);
    await page.locator('.struct .plain a').click();
    await frame(page);
    assert.match(await text(page, '.summary'), /^5 of 5 call stacks|^5 call stacks/);
    await go(page, '#/overview');
    assert.equal(await page.locator('.findings .links a').count(), 1);
    return page;
});

test('an address that is not in the page says so', async () => {
    const page = await open(browser, perlPage);
    for (const [hash, words] of [['#/nowhere', 'There is no view “nowhere”'], ['#/contexts?at=99999999', 'no place 99999999'], ['#/contexts?by=colour', 'grouped by “colour”'], ['#/contexts?sort=colour', 'no column “colour”'], ['#/contexts?columns=bytes+colour', 'Unknown columns: colour'],
        ['#/contexts?ids=99999999', 'not in this profile'], ['#/flame?zoom=nobody', 'call path of this link'], ['#/flame?focus=nobody', 'no function “nobody”'], ['#/flame?value=colour', 'no value “colour”'], ['#/sandwich?f=nobody', 'no function “nobody”'], ['#/overview?by=colour', 'no value “colour”']]) {
        await go(page, hash);
        assert.ok((await text(page, '.notices')).includes(words), `${hash}: ${await text(page, '.notices')}`);
    }
    await shoot(page, 'unknown');
    await go(page, '#/contexts');
    assert.equal((await page.locator('.notices').innerText()).trim(), '');
    return page;
});

/* Every row of the page's tables against heapwise report --by, value by value. */
test('sums by function, file, line, module and size are those of the terminal', async () => {
    const format = await viewerModule('format.ts');
    const page = await open(browser, perlPage);
    const base = (file) => file.slice(file.lastIndexOf('/') + 1);
    const names = {
        function: (row) => row.function ?? `${base(row.module)}+0x${row.offset.toString(16)}`,
        file: (row) => row.file ?? row.module, module: (row) => row.module,
        line: (row) => (row.file ? `${row.file}:${row.line}` : row.module),
        size: (row) => format.bytes(row.size_most),
    };
    const shownNames = {
        function: ([title]) => title, file: ([, where]) => where, module: ([, where]) => where,
        line: ([title, where]) => (/:\d+$/.test(title) ? `${where}:${title.split(':').pop()}` : where),
        size: ([title]) => title.replace(/.* to /, ''),
    };
    let compared = 0;
    for (const [by, nameOf] of Object.entries(names)) {
        await go(page, `#/contexts?by=${by}&columns=peak+count&sort=${by === 'size' ? '' : 'cum:'}count`);
        await page.evaluate(() => { window.copied = ''; });
        await page.getByText('Copy table').click();
        await page.waitForFunction(() => window.copied);
        const rows = (await page.evaluate(() => window.copied)).trimEnd().split('\n').slice(1).map((line) => line.split('\t'));
        const columns = by === 'size' ? 1 : 2; // of a value: total, self
        const sums = ['peak', 'count'].map((value) => new Map());
        ['peak', 'count'].forEach((value, at) => JSON.parse(run(heapwise, 'report', '--json', '--by', by, '--value', value, 'perl.hwprof')).groups.rows.forEach((row) => {
            const old = sums[at].get(nameOf(row)) ?? { total: 0, self: 0 };
            sums[at].set(nameOf(row), { total: old.total + row.total, self: old.self + (row.self ?? 0) });
        }));
        assert.ok(rows.length === Math.min(200, sums[1].size), `${by}: ${rows.length} rows, not ${sums[1].size}`);
        for (const row of rows) {
            const title = shownNames[by](row.slice(2 * columns));
            const told = sums.map((each) => each.get(title) ?? { total: 0, self: 0 });
            const expected = [[format.bytes(told[0].total), format.bytes(told[0].self)].slice(0, columns), [format.count(told[1].total), format.count(told[1].self)].slice(0, columns)].flat();
            assert.deepEqual(row.slice(0, 2 * columns), expected, `${by}: ${title}`);
            compared += expected.length;
        }
    }
    assert.ok(compared > 300, `${compared} numbers`);
    return page;
});

/* Numbers of tests/page/team.c, as the source says them. */
test('threads, regions and marks: numbers that are known', async () => {
    if (!compiled('team', 'team.c', '-g', '-pthread', '-I', path.join(source, 'include')))
        return console.log('  not looked at: clang cannot build it');
    run(heapwise, 'record', '-q', '-f', '-o', 'team.hwprof', '--', './team');
    const page = await open(browser, view('team'));
    const cells = (row) => row.locator('td, .cell').allInnerTexts();
    const overview = await Promise.all((await page.locator('.threads tbody tr').all()).map(cells));
    const reader = overview.find((row) => row[6].startsWith('read_all'));
    const writer = overview.find((row) => row[6].startsWith('write_all'));
    assert.deepEqual(reader.slice(0, 6), ['6.2 KiB', '5.9 KiB', '6.2 KiB', '100', '5', '0']);
    assert.deepEqual(writer.slice(0, 6), ['48.8 KiB', '29.3 KiB', '48.8 KiB', '50', '0', '0']);
    assert.equal(overview.find((row) => row[6].includes('main thread'))[5], '5');
    assert.deepEqual((await cells(page.locator('.regions tbody tr'))).slice(0, 5), ['1', '100', '6.2 KiB', '+6.2 KiB', '6.2 KiB']);
    assert.match(await text(page, '.regions tbody tr'), /reading\s*of a thread/);
    /* marks: two of them, by keys, with what they are */
    const marks = page.locator('.marks button');
    assert.equal(await marks.count(), 2);
    const { marks: known } = report('team');
    assert.ok(!(await page.locator('.on-paper').isVisible()));
    await page.emulateMedia({ media: 'print' });
    assert.match(await text(page, '.on-paper'), /^Marks: joined, .* live; all <b>done<\/b>, /);
    await page.emulateMedia({ media: 'screen' });
    await marks.nth(1).focus();
    assert.match(await marks.nth(1).getAttribute('aria-label'), /^Mark: all <b>done<\/b>, [\d.]+ ms, [\d.]+ KiB live$/);
    assert.match(await marks.nth(1).evaluate((button) => getComputedStyle(button, '::after').content), /all <b>done<\/b>/);
    await page.keyboard.press('Enter');
    assert.equal(Number(new URLSearchParams(new URL(page.url()).hash.split('?')[1]).get('moment')), known[1].time_ns);
    assert.ok((await text(page, '.tiles')).includes('36.0 KiB'), 'live bytes at the mark');
    /* histograms are of the whole run, and say so */
    await page.locator('a[data-view=sizes]').click();
    assert.match(await text(page, '.range-bar'), /This view shows the whole run/);
    await page.keyboard.press('Escape');
    /* places by thread */
    await go(page, '#/contexts?by=thread');
    const rows = async () => new Map(await Promise.all((await page.locator('.list-rows .row').all()).map(async (row) => [await text(row, '.name'), (await cells(row)).slice(0, 4)])));
    let shown = await rows();
    assert.deepEqual(shown.get('write_all'), ['48.8 KiB', '48.8 KiB', '50', '29.3 KiB']);
    assert.deepEqual(shown.get('read_all'), ['6.2 KiB', '6.2 KiB', '100', '5.9 KiB']);
    await go(page, '#/contexts?by=thread&q=read_all');
    shown = await rows();
    assert.deepEqual(shown.get('read_all'), ['?', '6.2 KiB', '100', '?']);
    await go(page, `#/contexts?by=thread&moment=${known[0].time_ns}`);
    assert.match(await text(page, '.notices'), /not recorded by time/);
    await shoot(page, 'team');
    return page;
});

test('print: every row, every finding', async () => {
    const page = await open(browser, perlPage, {}, '#/contexts?by=stack');
    const all = Math.min(2000, perl.contexts.length);
    assert.ok(await page.locator('.list-item').count() < 100);
    await page.emulateMedia({ media: 'print' });
    await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
    assert.equal(await page.locator('.list-item .row').count(), all);
    const columns = await page.locator('.list-head .cell').count();
    assert.ok(columns > 4);
    assert.ok(await page.locator('.list-item .row').nth(3).evaluate((row, count) => [...row.children].filter((cell) => cell.getClientRects().length).length === count, columns), 'every column is on paper');
    const last = await page.locator('.list-item').last().boundingBox();
    assert.ok(last.y > 16 * (all - 1), `the last row is at ${last.y}`);
    /* Every column that was chosen, on paper of any width. */
    for (const columns of ['', '&columns=peak+bytes+count+leaked+temporary+realloc+lifetime-or-age+size+frees+size-min+size-max+first-ns+lifetime-max-ns']) {
        const wide = await open(browser, perlPage, { viewport: { width: 760, height: 1000 } }, `#/contexts?by=function${columns}`);
        const shown = await wide.locator('.list-rows .row').first().locator('.cell').count();
        await wide.emulateMedia({ media: 'print' });
        await wide.evaluate(() => dispatchEvent(new Event('beforeprint')));
        const boxes = await wide.locator('.list-rows .row').first().locator('.cell').evaluateAll((cells) => cells.map((cell) => cell.getBoundingClientRect()).map(({ left, right, height }) => ({ left, right, height })));
        assert.equal(boxes.length, shown);
        assert.ok(boxes.every(({ left, right, height }) => height > 0 && left >= 0 && right <= 760), JSON.stringify(boxes));
        await wide.screenshot({ path: path.join(work, `../../../screenshots/print-columns${columns ? '-all' : ''}.png`) });
        await wide.context().close();
    }
    await page.evaluate(() => dispatchEvent(new Event('afterprint')));
    await page.emulateMedia({ media: 'screen' });
    await frame(page);
    assert.ok(await page.locator('.list-item').count() < 100);
    return page;
});

/* ---- keys, colours, paper ---- */

test('keys lead everywhere and the focus is seen', async () => {
    const page = await open(browser, perlPage);
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.className), 'skip');
    await page.keyboard.press('Tab');
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    assert.notEqual(outline, 'none');
    for (const [key, view] of [['2', 'flame'], ['3', 'contexts'], ['4', 'sandwich'], ['8', 'allocator'], ['1', 'overview']]) {
        await page.keyboard.press(key);
        await page.waitForSelector(`main.${view}`);
    }
    await page.keyboard.press('?');
    await page.waitForSelector('dialog[open]');
    await shoot(page, 'keys');
    await page.keyboard.press('Escape');
    assert.equal(await page.locator('dialog[open]').count(), 0);
    return page;
});

test('light and dark: the system’s, and by the switch', async () => {
    const paper = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const page = await open(browser, perlPage, { colorScheme: 'dark' });
    const dark = await paper(page);
    for (const view of ['overview', 'flame', 'contexts']) {
        await go(page, `#/${view}`);
        await shoot(page, `dark-${view}`);
    }
    await page.keyboard.press('t');
    assert.equal(await paper(page), 'rgb(255, 255, 255)');
    await page.keyboard.press('t');
    assert.equal(await paper(page), dark);
    const light = await open(browser, perlPage);
    assert.equal(await paper(light), 'rgb(255, 255, 255)');
    await light.context().close();
    return page;
});

test('print: what is read, without what is clicked', async () => {
    const page = await open(browser, perlPage);
    await page.emulateMedia({ media: 'print' });
    assert.equal(await page.locator('nav').isVisible(), false);
    assert.equal(await page.locator('.tiles').isVisible(), true);
    const paper = await page.pdf({ format: 'A4' });
    assert.ok(paper.length > 10000);
    await shoot(page, 'print');
    return page;
});

/* ---- hostile names ---- */

async function unharmed(page) {
    assert.equal(await page.locator('img').count(), 0);
    assert.equal(await page.locator('main script, main b, main i:not([class]):not(:empty)').count(), 0);
    assert.deepEqual(page.trouble, []);
}

/* ---- what keeps pages resident ---- */

test('pinned: sums, how full pages are, and places by what they pin', async () => {
    const programs = path.join(source, 'tests/programs');
    if (!compiled('arena', '../programs/arena.c', '-I', programs))
        return console.log('  not looked at: clang cannot build it');
    run(heapwise, 'record', '-q', '-f', '--pinned', '-o', 'arena.hwprof', '--', './arena');
    const made = report('arena');
    if (!made.heap_pages)
        return console.log('  not looked at: pages were not examined');
    const pins = made.pinned.filter((each) => each.bytes_pinned);
    const says = (where, value) => where.includes(shownBytes(value)) || where.includes(shownBytes(value - 1)); // between two numbers
    const page = await open(browser, view('arena'), {}, '#/pinned');
    const all = await text(page, 'main');
    for (const key of ['requested_bytes', 'free_bytes', 'resident_bytes'])
        assert.ok(says(all, made.heap_pages[key]), key);
    for (const { resident_bytes } of made.heap_pages.occupancy.filter((each) => each.resident_bytes))
        assert.ok(says(all, resident_bytes), String(resident_bytes));
    const rows = await page.locator('.owners tbody tr').allInnerTexts();
    assert.equal(rows.length, pins.length);
    for (const [index, pin] of pins.entries())
        assert.ok(says(rows[index], pin.bytes_pinned) && rows[index].includes(pin.pages.toLocaleString('en-US')), rows[index]);
    assert.ok(rows.some((each) => each.includes('new_session')));
    await shoot(page, 'pinned');
    /* A place leads to its call stack. */
    await page.locator('.owners tbody a', { hasText: 'new_session' }).first().click();
    await frame(page);
    assert.match(page.url(), new RegExp(`#/contexts.*at=\\d+`));
    return page;
});

/* ---- who keeps the memory ---- */

/* What tests/programs/keeps.c says itself: names of variables, and of the functions that allocate what they keep. */
let keepsPage = null;
function keepsProfile() {
    const programs = path.join(source, 'tests/programs');
    if (!keepsPage && compiled('keeps', '../programs/keeps.c', '-I', programs, '-pthread')) {
        run(heapwise, 'record', '-q', '-f', '--keeps', '-o', 'keeps.hwprof', '--', './keeps', 'kinds');
        keepsPage = { file: view('keeps'), report: report('keeps') };
    }
    return keepsPage;
}
const sharesOf = (page, at) => page.locator('.keeps-detail .shares').nth(at).locator('li').allInnerTexts();

test('keeps: from a variable downwards, from a place upwards', async () => {
    const made = keepsProfile();
    if (!made)
        return console.log('  not looked at: clang cannot build it');
    const { keepers, search } = made.report.keeps;
    const page = await open(browser, made.file, {}, '#/keeps');
    const whole = await text(page, '.icicle');
    for (const wanted of ['all that can be reached', 'list', 'tree', 'table', 'of_list', 'of_tree'])
        assert.ok(whole.split('\n').some((each) => each === wanted), `${wanted} in ${whole}`);
    assert.ok((await text(page, '#keeps-said')).includes(`in ${search.blocks.toLocaleString('en-US')} blocks`));
    /* A click on the variable shows its places only: 500 blocks of 48 bytes. */
    await page.locator('.keep-box', { hasText: /^list/ }).first().click();
    await frame(page);
    const list = keepers.find((each) => each.variable === 'list' && each.kind === 'pointer');
    assert.match(page.url(), new RegExp(`keeper=${list.id}$`));
    assert.match(await text(page, '#keeps-said'), /^list \(keeps\): 23\.4 KiB \(.*\) in 500 blocks/);
    assert.deepEqual(await rowsOf(page), { of_list: ['23.4 KiB', '500', '23.4 KiB'] });
    await shoot(page, 'keeps');
    /* The same from its address; the Back key leads out again. */
    const again = await open(browser, made.file, {}, new URL(page.url()).hash);
    assert.deepEqual(await rowsOf(again), { of_list: ['23.4 KiB', '500', '23.4 KiB'] });
    await again.context().close();
    await page.goBack();
    await frame(page);
    assert.ok(Object.keys(await rowsOf(page)).length > 5);
    /* By keys: to the first box below all, and into it. */
    await page.locator('.icicle').focus();
    await page.keyboard.press('ArrowDown');
    const first = await page.locator('.keep-box[aria-selected=true] bdi').innerText();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('Enter');
    await frame(page);
    assert.equal(await page.locator('.crumbs button').nth(1).innerText(), first);
    await page.keyboard.press('Escape');
    await frame(page);
    assert.doesNotMatch(page.url(), /keeper=/);
    /* Upwards: who keeps the tree's blocks, and what points to them: nodes of the tree. */
    await page.locator('#search').fill('of_tree');
    await page.waitForFunction(() => document.querySelector('.summary').textContent.includes('“of_tree”'));
    const trees = page.locator('.list-rows .row').nth(1); // the first one is the root of the tree
    await trees.click({ position: { x: 20, y: 8 } });
    await page.waitForSelector('.keeps-detail');
    assert.match(page.url(), /at=\d+/);
    const detail = await page.locator('.keeps-detail').allInnerTexts();
    assert.ok(detail.some((each) => /tree →( of_tree →)+ of_tree/.test(each)), detail.join());
    assert.match((await sharesOf(page, 0)).join(), /100 %\s*tree/);
    assert.match((await sharesOf(page, 1)).join(), /100 %\s*of_tree/);
    const place = await open(browser, made.file, {}, new URL(page.url()).hash);
    await place.waitForSelector('.keeps-detail');
    await place.context().close();
    /* Sums: what each box below all keeps is what the report says. */
    await go(page, '#/keeps');
    await page.locator('.keep-box', { hasText: /^table/ }).first().click();
    const table = keepers.find((each) => each.variable === 'table' && each.kind === 'variable');
    assert.ok((await text(page, '#keeps-said')).includes(`in ${table.retained_blocks} blocks`));
    for (const hash of ['#/keeps?keeper=__proto__&at=constructor', '#/keeps?keeper=-1&sort=x&q=%5B(*', '#/keeps?at=99999999'])
        await go(page, hash);
    await shoot(page, 'keeps-whole');
    return page;
});

test('hostile names of a program stay text', async () => {
    const built = tries('clang', '-O0', path.join(source, 'tests/page/hostile.c'), '-o', 'hostile');
    if (built.status)
        return console.log(`  not looked at: clang cannot build it: ${built.stderr}`);
    run(heapwise, 'record', '-q', '-f', '-o', 'hostile.hwprof', '--', './hostile', '</script><script>alert(5)</script>', '<img src=x onerror=alert(6)>');
    const file = view('hostile');
    assert.ok(!readFileSync(file, 'latin1').includes('alert(1)'), 'names are in the stream only');
    const page = await open(browser, file);
    for (const view of ['overview', 'flame', 'contexts', 'contexts?by=function', 'sandwich', 'sandwich?f=main', 'hot', 'structs', 'blocks', 'allocator']) {
        await go(page, `#/${view}`);
        await unharmed(page);
    }
    await go(page, '#/contexts');
    await page.locator('.list').focus();
    await page.keyboard.press('Enter');
    await page.waitForSelector('.detail');
    const shown = await text(page, '.list');
    for (const wanted of ['</script><img src=x onerror=alert(1)><script>alert(2)</script>', '<b>bold</b> ${alert(4)}', 'safe\\u202egnp.exe\\u2066', '__proto__', 'long_name_and_on'])
        assert.ok(shown.includes(wanted), wanted);
    assert.ok(!/[\u202a-\u202e\u2066-\u2069]/.test(shown), 'nothing turns the text around');
    await shoot(page, 'hostile');
    await go(page, '#/flame');
    await page.keyboard.press('/');
    await page.keyboard.type('<img src=x onerror');
    await page.waitForFunction(() => document.querySelector('.matched').textContent.startsWith('1 function'));
    await page.locator('canvas').hover({ position: { x: 300, y: 90 } });
    await page.locator('canvas').click({ position: { x: 300, y: 90 } });
    await shoot(page, 'hostile-flame');
    await unharmed(page);
    return page;
});

test('hostile contents of every section stay text', async () => {
    const evil = '<img src=x onerror=alert(1)></script><script>alert(2)</script>\u202e';
    const poisoned = JSON.parse(JSON.stringify({ ...allocatorReport(),
        process: { executable: `/x/${evil}`, command: [evil], allocator: evil, state: evil, mode: evil, file: evil, duration_ns: 1e9 },
        findings: [{ kind: evil, rank: 1, title: evil, why: evil, what_to_do: evil, expected_gain: evil, struct: evil, contexts: [1] }],
        fields: [{ struct: evil, size: 16, file: evil, line: 1, fields: [{ name: evil, offset: 0, size: 8, type: evil, reads: 5 }, { name: 'b', offset: 8, size: 8, reads: 2 }], affinity: [{ a: evil, b: 'b', together: 3 }], suggestion: { layout: [{ name: evil, offset: 0, size: 8 }], definition: evil } }],
        globals: [{ symbol: evil, module: evil, size: 16, accesses: 3, histogram: [1, 2] }],
        timeline: [{ time_ns: 0, live_bytes: 1 }, { time_ns: 5, live_bytes: 2 }], memory: [{ moment: evil, rss_bytes: 5 }], not_observed: [evil] }).replaceAll('main_arena', 'x'));
    poisoned.allocator[evil] = [{ [evil]: evil }];
    poisoned.allocator.verdict = evil;
    const page = await open(browser, makePage('poisoned', stream(simpleParts(poisoned, [[evil, evil], ['constructor', '__proto__']]))));
    for (const view of ['overview', 'flame', 'contexts?at=1', 'contexts?by=function', `sandwich?f=${encodeURIComponent('constructor')}`, 'hot', 'structs', 'blocks', 'allocator']) {
        await go(page, `#/${view}`);
        await unharmed(page);
        assert.ok(!(await text(page, 'body')).includes('\u202e'), view);
    }
    assert.ok((await page.title()).length > 0);
    /* An address is as hostile as a name. */
    for (const hash of ['#/contexts?sort=__proto__&columns=constructor&at=x&q=%22%5B(*', '#/flame?value=toString&zoom=%E0%A4%A&shape=none&focus=%00', '#/nowhere?', '#/overview?from=NaN&to=-5', '#/blocks?of=x', '#/structs?struct=%3Cimg%3E', '#/sandwich?f=%3Cimg%20src%3Dx%3E&value=__proto__', '#/contexts?by=constructor&ids=1.x.__proto__'])
        await go(page, hash);
    await unharmed(page);
    return page;
});

test('a damaged stream is told, and nothing else happens', async () => {
    const good = stream(simpleParts(minimal, [['f', 'main']]));
    for (const [name, data] of [['nothing', ''], ['no base64', '!!!'], ['no zlib', 'AAAA'], ['cut', good.subarray(0, good.length / 2)], ['no report', stream([['strings', 'strings', []]])]]) {
        const page = await open(browser, makePage('damaged', data));
        assert.match(await text(page, '[role=alert]'), /cannot be shown/, name);
        await page.context().close();
    }
});

/* ---- what leaves, who can read it, how large it may be ---- */

test('the policy of the page forbids requests', async () => {
    const page = await open(browser, perlPage);
    const policy = await page.locator('meta[http-equiv="Content-Security-Policy"]').getAttribute('content');
    assert.match(policy, /^default-src 'none'; script-src 'sha256-[^ ]+'; style-src 'sha256-[^ ]+';/);
    const blocked = await page.evaluate(async () => {
        const seen = [];
        document.addEventListener('securitypolicyviolation', (event) => seen.push(event.effectiveDirective));
        await fetch('http://127.0.0.1:9/').catch(() => {});
        const image = new Image();
        image.src = 'http://127.0.0.1:9/x.png';
        const script = document.createElement('script');
        script.textContent = 'window.ran = true';
        document.body.append(image, script);
        await new Promise((done) => setTimeout(done, 100));
        return { seen, ran: window.ran };
    });
    assert.deepEqual([...new Set(blocked.seen)].sort(), ['connect-src', 'img-src', 'script-src-elem']);
    assert.equal(blocked.ran, undefined);
    page.trouble = [];
    return page;
});

test('accessible: axe finds nothing serious', async () => {
    const axe = axeSource();
    const pages = [[perlPage, ['overview', 'flame', 'contexts', 'contexts?by=module', 'sandwich?f=main', 'sandwich', 'hot', 'sizes', 'sizes?kind=lifetimes']], [makePage('accessible', stream(simpleParts(allocatorReport(), [['f', 'main']]))), ['allocator']]];
    if (shapes8)
        pages.push([shapes8.page, ['hot', 'structs', 'blocks', 'overview']]);
    if (keepsProfile())
        pages.push([keepsProfile().file, ['keeps']]);
    for (const colorScheme of ['light', 'dark'])
        for (const [file, views] of pages) {
            const page = await open(browser, file, { colorScheme });
            await page.evaluate(axe);
            const rules = colorScheme === 'dark' ? { runOnly: ['color-contrast'] } : {}; // the rest is the same in both
            for (const view of views) {
                await go(page, `#/${view}`);
                if (view.startsWith('contexts') || view === 'blocks' || view === 'keeps')
                    await page.locator('.list-rows .row').first().click({ position: { x: 20, y: 10 } });
                const found = await page.evaluate(async (options) => (await window.axe.run(document, { resultTypes: ['violations'], ...options })).violations
                    .map((each) => ({ id: each.id, impact: each.impact, nodes: each.nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary}`) })), rules);
                const serious = found.filter((each) => each.impact === 'serious' || each.impact === 'critical');
                assert.deepEqual(serious, [], `${view}, ${colorScheme}`);
            }
            assert.deepEqual(page.trouble, []);
            await page.context().close();
        }
});

test('a large profile opens, and the page is small', async () => {
    const maker = path.join(path.dirname(heapwise), 'make_profiles');
    if (!existsSync(maker))
        return console.log('  not looked at: make_profiles was not built');
    run(maker, 'own', heapwise, work, '2');
    run(heapwise, 'merge', '-q', '-f', '-o', 'large.hwprof', '0000.hwprof', '0001.hwprof');
    const file = view('large');
    const limit = 3 * statSync(path.join(work, 'large.hwprof')).size + (1 << 20);
    assert.ok(statSync(file).size <= limit, `${statSync(file).size} > ${limit}`);
    const page = await open(browser, file, {}, '#/contexts');
    const count = Number((await page.locator('.list').getAttribute('aria-rowcount')) ?? 0) - 1;
    assert.ok(count > 25000, `${count} places`);
    assert.ok(await page.locator('.list-item').count() < 100, 'only rows that are seen exist');
    await page.locator('.list').focus();
    await page.keyboard.press('End');
    await frame(page);
    assert.equal(await page.locator('.row.active').getAttribute('data-index'), String(count - 1));
    for (const hash of ['#/flame', '#/flame?shape=inverted', '#/contexts?by=function', '#/sandwich', '#/hot', '#/overview'])
        await go(page, hash);
    await go(page, '#/flame');
    await shoot(page, 'large-flame');
    return page;
});

/* ---- running them ---- */

let failed = 0;
const wanted = tests.filter((each) => !process.argv[2] || each.name.includes(process.argv[2]));

async function runTest({ name, body }) {
    const start = Date.now();
    try {
        const page = await body();
        if (page) {
            assert.deepEqual(page.trouble, [], 'errors in the page');
            await page.context().close();
        }
        console.log(`ok      ${name} (${Date.now() - start} ms)`);
    } catch (error) {
        failed++;
        console.log(`FAILED  ${name}\n${error.stack ?? error}`);
    }
}

/* Two at a time: half of the time a page waits for its next frame. */
const waiting = [...wanted];
await Promise.all([0, 1].map(async () => {
    while (waiting.length)
        await runTest(waiting.shift());
}));
if (wanted.length > 1)
    await runTest({ name: 'no request has left any page', body: async () => assert.deepEqual(leaks().filter((each) => !each.startsWith('http://127.0.0.1:9/')), []) });
await browser.close();
console.log(`${wanted.length - failed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
