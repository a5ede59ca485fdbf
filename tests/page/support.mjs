/* support.mjs - what the tests of the page share: a browser, profiles, pages with made-up contents. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { deflateSync } from 'node:zlib';

export const source = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const require = createRequire(path.join(source, 'viewer/'));

/* Where things are: page_test.mjs BUILD. */
export const build = path.resolve(process.env.HEAPWISE_BUILD ?? path.join(source, 'build/release'));
export const heapwise = path.join(build, 'bin/heapwise');
export const template = path.join(build, 'share/heapwise/page.html');
export const work = path.join(build, 'tests/page/work');
export const screenshots = path.join(build, 'screenshots');

export function skip(reason) {
    console.log(`skipped: ${reason}`);
    process.exit(77);
}

function findBrowser() {
    return [process.env.HEAPWISE_CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((each) => each && existsSync(each));
}

/* A running browser; ends the test program as skipped where there is none. */
export async function startBrowser() {
    const executablePath = findBrowser();
    if (!executablePath)
        skip('there is no chromium here (scripts/setup test installs it where the distribution has it)');
    let chromium;
    try {
        ({ chromium } = require('playwright-core'));
    } catch {
        skip('the packages of viewer/package-lock.json are not there (scripts/setup fetches them)');
    }
    rmSync(work, { recursive: true, force: true });
    mkdirSync(work, { recursive: true });
    mkdirSync(screenshots, { recursive: true });
    return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'], timeout: 60000 });
}

/* A module of the viewer that imports nothing. */
export function viewerModule(name) {
    const ts = require('typescript');
    const { outputText } = ts.transpileModule(readFileSync(path.join(source, 'viewer/src', name), 'utf8'), { compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 } });
    return import(`data:text/javascript;base64,${Buffer.from(outputText).toString('base64')}`);
}

export const axeSource = () => readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

export function run(program, ...args) {
    return execFileSync(program, args, { cwd: work, encoding: 'utf8', maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'pipe'] });
}

export function tries(program, ...args) {
    return spawnSync(program, args, { cwd: work, encoding: 'utf8' });
}

/* The profile NAME.hwprof as NAME.html, with options as another page; returns its path. */
let pages = 0;
export function view(name, ...options) {
    const page = options.length ? `${name}-${++pages}.html` : `${name}.html`;
    run(heapwise, 'view', '-q', '-f', '-o', page, ...options, `${name}.hwprof`);
    return path.join(work, page);
}

export function report(name) {
    return JSON.parse(run(heapwise, 'report', '--json', `${name}.hwprof`));
}

/* ---- pages of made-up profiles: the stream as src/report/page/page_data.h describes it ---- */

function varint(value) {
    const bytes = [];
    for (; value > 127; value = Math.floor(value / 128))
        bytes.push((value % 128) + 128);
    return Buffer.from([...bytes, value]);
}

const zigzag = (value) => (value < 0 ? -2 * value - 1 : 2 * value);
const kinds = { text: 0, strings: 1, numbers: 2, signed: 3, steps: 4 };

function contents(kind, value) {
    if (kind === 'text')
        return Buffer.from(value);
    if (kind === 'strings')
        return Buffer.from(['', ...value].map((each) => `${each}\0`).join(''));
    let last = 0;
    return Buffer.concat(value.map((each) => {
        const written = kind === 'numbers' ? each : zigzag(kind === 'steps' ? each - last : each);
        last = each;
        return varint(written);
    }));
}

/* PARTS: [name, kind, value]. */
export function stream(parts) {
    return deflateSync(Buffer.concat(parts.map(([name, kind, value]) => {
        const bytes = contents(kind, value);
        return Buffer.concat([varint(name.length), Buffer.from(name), Buffer.from([kinds[kind]]), varint(bytes.length), bytes]);
    })));
}

/* A page of streams, or of any text in their place. */
export function makePage(name, data) {
    const file = path.join(work, `${name}.html`);
    const text = Buffer.isBuffer(data) ? data.toString('base64') : data;
    writeFileSync(file, readFileSync(template, 'utf8').replace('@HEAPWISE-PROFILES-2@', () => text).replace('@HEAPWISE-RESTS-2@', ''));
    return file;
}

/* The parts of a profile with one place for each of STACKS: arrays of function names, leaf first. A function has one
 * address. */
export function simpleParts(reportObject, stacks, more = []) {
    const strings = [];
    const number = (text) => (strings.includes(text) ? strings.indexOf(text) + 1 : strings.push(text));
    const nodes = [{ above: 0, location: 0 }];
    const frames = [];
    const leaves = stacks.map((stack) => {
        let parent = 0;
        for (const text of [...stack].reverse()) {
            if (!frames.includes(number(text)))
                frames.push(number(text));
            nodes.push({ above: nodes.length - parent, location: frames.indexOf(number(text)) });
            parent = nodes.length - 1;
        }
        return parent;
    });
    const each = (value) => stacks.map((_, index) => value(index));
    return [
        ['report', 'text', JSON.stringify(reportObject)],
        ['frame.function', 'numbers', frames],
        ['location.frames', 'numbers', frames.map(() => 1)],
        ['location.module', 'numbers', frames.map(() => 0)],
        ['location.address', 'steps', frames.map((_, index) => index)],
        ['node.above', 'numbers', nodes.map((node) => node.above)],
        ['node.location', 'steps', nodes.map((node) => node.location)],
        ['context.id', 'steps', each((index) => index + 1)],
        ['context.leaf', 'steps', leaves],
        ['context.headline', 'numbers', each(() => 0)],
        ['context.allocations', 'numbers', each((index) => index + 1)],
        ['context.bytes', 'numbers', each((index) => 100 * (index + 1))],
        ['context.frees', 'numbers', each((index) => index + 1)],
        ['context.lifetime_ns', 'numbers', each((index) => 1000 * (index + 1))],
        ...more,
        ['strings', 'strings', strings],
    ];
}

/* ---- looking at pages ---- */

const outside = [];

/* Requests that did not stay on the disk, of all pages so far. */
export const leaks = () => outside;

/* BEFORE runs in the page before its own script. */
export async function open(browser, file, options = {}, hash = '', before = () => {}) {
    const context = await browser.newContext({ viewport: { width: 1360, height: 860 }, reducedMotion: 'reduce', ...options });
    const page = await context.newPage();
    page.trouble = [];
    page.on('pageerror', (error) => page.trouble.push(String(error)));
    page.on('console', (message) => message.type() === 'error' && page.trouble.push(message.text()));
    page.on('dialog', (dialog) => { page.trouble.push(`dialog: ${dialog.message()}`); void dialog.dismiss(); });
    page.on('request', (request) => request.url().startsWith('file:') || outside.push(request.url()));
    page.on('websocket', (socket) => outside.push(socket.url()));
    await page.addInitScript(() => {
        window.copied = '';
        Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (text) => { window.copied = text; } } });
    });
    await page.addInitScript(before);
    await page.goto(`file://${file}${hash}`);
    await page.waitForSelector('#app:not([aria-busy]) main, [role=alert]', { timeout: 60000 });
    return page;
}

export async function frame(page) {
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

export async function go(page, hash) {
    await page.evaluate((to) => { location.hash = to; }, hash);
    await frame(page);
}

export async function shoot(page, name) {
    await frame(page);
    await page.screenshot({ path: path.join(screenshots, `${name}.png`), animations: 'disabled' });
}
