/* page_test.mjs - the page of heapwise view in Chromium: every view, keys, links, colours, hostile names, a large profile.
 *
 *     HEAPWISE_BUILD=build/release node tests/page/page_test.mjs [PART OF A TEST'S NAME]
 *
 * Figures are compared with heapwise report --json. Every page is opened from disk; at the end no request may have left. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { axeSource, frame, go, heapwise, leaks, makePage, open, report, run, shoot, simpleParts, skip, source, startBrowser, stream, template, tries, view, work } from './support.mjs';

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
    await page.locator('.range a').click();
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
    await page.waitForFunction(() => document.querySelector('.matched').textContent.includes('%'));
    /* What the search says is the share of the places with that function anywhere on the stack. */
    const all = perl.contexts.reduce((sum, each) => sum + each.bytes, 0);
    const hit = perl.contexts.filter((each) => each.stack.some((at) => at.function?.includes('hv_common'))).reduce((sum, each) => sum + each.bytes, 0);
    assert.ok((await text(page, '.matched')).includes(`${((hit / all) * 100).toFixed(1)} %`), await text(page, '.matched'));
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
    assert.match(tip, /^[\d,]+ functions too narrow to be drawn: [\d.]+ % below caller/);
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

const allViews = ['overview', 'flame', 'flame?shape=inverted', 'contexts', 'contexts?by=function', 'sandwich?f=main', 'changes', 'hot', 'structs', 'blocks', 'allocator'];

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

test('views without data say what would bring it', async () => {
    const page = await open(browser, perlPage);
    for (const [key, words] of [['hot', 'heapwise cc'], ['structs', '--fields'], ['blocks', '--granule=8'], ['allocator', '--mode allocator']]) {
        await go(page, `#/${key}`);
        assert.ok((await text(page, '.empty')).includes(words), key);
    }
    await shoot(page, 'without-data');
    const empty = await open(browser, makePage('empty', stream(simpleParts({ format: 1, process: {}, totals: {} }, []))));
    for (const key of ['overview', 'flame', 'contexts', 'hot', 'structs', 'blocks', 'allocator'])
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

/* ---- what is resident, and whose it is ---- */

const mib = (value) => Math.round(value * (1 << 20));

test('resident memory: moments are named, Heapwise’s own is apart', async () => {
    const moment = (name, time, live, heap, own) => ({ moment: name, time_ns: time, live_bytes: mib(live), heap_bytes: mib(heap), file_bytes: mib(3.1), stack_bytes: 65536, runtime_bytes: mib(own), other_bytes: 4096, swap_bytes: 0,
        rss_bytes: mib(heap) + mib(3.1) + 65536 + mib(own) + 4096 });
    const made = { ...minimal, process: { ...minimal.process, duration_ns: 2e9 }, totals: { ...minimal.totals, peak_bytes: mib(58.1), peak_time_ns: 1.1e9, peak_rss_bytes: mib(61) },
        memory: [moment('peak', 959e6, 32.9, 53.9, 2.5), moment('end', 2e9, 12, 10, 2.75)],
        timeline: Array.from({ length: 9 }, (_, i) => ({ time_ns: i * 25e7, live_bytes: mib(i * 6), rss_bytes: mib(8 + i * 6), allocations: i, frees: 0 })) };
    const page = await open(browser, makePage('memory', stream(simpleParts(made, [['f', 'main']]))));
    const said = await page.locator('.moment p').allInnerTexts();
    assert.equal(said[0], 'Near the peak (959 ms into the run, 32.9 MiB of 58.1 MiB live): 57.1 MiB resident, 59.6 MiB with Heapwise’s own memory');
    assert.match(said[1], /^At the end \(2\.00 s into the run, 12\.0 MiB live\): 13\.2 MiB resident, 15\.9 MiB with/);
    const parts = await page.locator('.moment').first().locator('.legend li').allInnerTexts();
    for (const wanted of ['heap blocks, as requested 32.9 MiB', 'heap around them: headers, rounding, freed blocks 21.0 MiB', 'Heapwise’s own memory 2.5 MiB'])
        assert.ok(parts.includes(wanted), `${wanted} in ${parts.join('; ')}`);
    const after = await page.locator('.moment').nth(1).locator('.legend li').allInnerTexts();
    for (const wanted of ['heap blocks, the part that was touched 10.0 MiB', 'requested but never touched, so not resident 2.0 MiB'])
        assert.ok(after.includes(wanted), `${wanted} in ${after.join('; ')}`);
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
    assert.ok((await text(page, '.chosen .summary')).includes(`total (cum) ${shownBytes(sum)} (100.0 %), self 0 B`), await text(page, '.chosen .summary'));
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

test('print: every row, every finding', async () => {
    const page = await open(browser, perlPage, {}, '#/contexts?by=stack');
    const all = Math.min(2000, perl.contexts.length);
    assert.ok(await page.locator('.list-item').count() < 100);
    await page.emulateMedia({ media: 'print' });
    await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
    assert.equal(await page.locator('.list-item .row').count(), all);
    const last = await page.locator('.list-item').last().boundingBox();
    assert.ok(last.y > 20 * (all - 1), `the last row is at ${last.y}`);
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
    const pages = [[perlPage, ['overview', 'flame', 'contexts', 'contexts?by=module', 'sandwich?f=main', 'sandwich', 'hot']], [path.join(work, 'allocator.html'), ['allocator']]];
    if (shapes8)
        pages.push([shapes8.page, ['hot', 'structs', 'blocks', 'overview']]);
    for (const colorScheme of ['light', 'dark'])
        for (const [file, views] of pages) {
            const page = await open(browser, file, { colorScheme });
            await page.evaluate(axe);
            const rules = colorScheme === 'dark' ? { runOnly: ['color-contrast'] } : {}; // the rest is the same in both
            for (const view of views) {
                await go(page, `#/${view}`);
                if (view.startsWith('contexts') || view === 'blocks')
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
