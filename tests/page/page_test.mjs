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
    const page = await open(browser, perlPage, {}, '#/contexts');
    const first = () => text(page, '.list-rows .row');
    assert.match(await text(page, '.summary'), new RegExp(`^${perl.contexts.length} places`));
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
    assert.match(await text(page, '.summary'), new RegExp(`^${perl.contexts.length} places`));
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
    await page.getByRole('checkbox', { name: 'Threads' }).check();
    await page.waitForSelector('[data-key=threads]');
    await page.locator('.list').focus();
    await page.keyboard.press('End');
    await frame(page);
    assert.equal(await page.locator('.row.active').getAttribute('data-index'), String(perl.contexts.length - 1));
    return page;
});

test('a link restores what was looked at', async () => {
    const wanted = peaks[20].id;
    const page = await open(browser, perlPage, {}, `#/contexts?at=${wanted}&sort=bytes&columns=bytes+leaked`);
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

const allViews = ['overview', 'flame', 'flame?shape=inverted', 'contexts', 'changes', 'hot', 'structs', 'blocks', 'allocator'];

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

/* ---- keys, colours, paper ---- */

test('keys lead everywhere and the focus is seen', async () => {
    const page = await open(browser, perlPage);
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.className), 'skip');
    await page.keyboard.press('Tab');
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    assert.notEqual(outline, 'none');
    for (const [key, view] of [['2', 'flame'], ['3', 'contexts'], ['7', 'allocator'], ['1', 'overview']]) {
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
    for (const view of ['overview', 'flame', 'contexts', 'hot', 'structs', 'blocks', 'allocator']) {
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
    for (const view of ['overview', 'flame', 'contexts?at=1', 'hot', 'structs', 'blocks', 'allocator']) {
        await go(page, `#/${view}`);
        await unharmed(page);
        assert.ok(!(await text(page, 'body')).includes('\u202e'), view);
    }
    assert.ok((await page.title()).length > 0);
    /* An address is as hostile as a name. */
    for (const hash of ['#/contexts?sort=__proto__&columns=constructor&at=x&q=%22%5B(*', '#/flame?value=toString&zoom=%E0%A4%A&shape=none&focus=%00', '#/nowhere?', '#/overview?from=NaN&to=-5', '#/blocks?of=x', '#/structs?struct=%3Cimg%3E'])
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
    const pages = [[perlPage, ['overview', 'flame', 'contexts', 'hot']], [path.join(work, 'allocator.html'), ['allocator']]];
    if (shapes8)
        pages.push([shapes8.page, ['hot', 'structs', 'blocks', 'overview']]);
    for (const colorScheme of ['light', 'dark'])
        for (const [file, views] of pages) {
            const page = await open(browser, file, { colorScheme });
            await page.evaluate(axe);
            const rules = colorScheme === 'dark' ? { runOnly: ['color-contrast'] } : {}; // the rest is the same in both
            for (const view of views) {
                await go(page, `#/${view}`);
                if (view === 'contexts' || view === 'blocks')
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
    for (const hash of ['#/flame', '#/flame?shape=inverted', '#/hot', '#/overview'])
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
