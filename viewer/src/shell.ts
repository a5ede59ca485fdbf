/* shell.ts - what is around the views: heading, tabs, messages, help, light and dark. */
import { add, h, name } from './dom';
import * as format from './format';
import { baseName } from './model';
import * as state from './state';
import { atTime, describe, onTime } from './time';
import type { Page, View } from './view';

const status = h('p', { class: 'toast', role: 'status', 'aria-live': 'polite' });
let quiet = 0;

/* A short message at the foot of the page, for a while. */
export function say(text: string): void {
    status.textContent = text;
    status.classList.add('shown');
    clearTimeout(quiet);
    quiet = window.setTimeout(() => status.classList.remove('shown'), 3500);
}

/* What of the address is not in this page: said above the view until another one is shown. */
const notices = h('div', { class: 'notices', role: 'status' });

export function tell(text: string): void {
    if (![...notices.children].some((line) => line.textContent === text))
        notices.append(h('p', null, text));
}

/* ---- light and dark ---- */

const themes = ['auto', 'light', 'dark'] as const;
type Theme = (typeof themes)[number];
const systemDark = matchMedia('(prefers-color-scheme: dark)');
const themeListeners = new Set<() => void>();

function storedTheme(): Theme {
    try {
        const stored = localStorage.getItem('heapwise-theme') as Theme;
        return themes.includes(stored) ? stored : 'auto';
    } catch {
        return 'auto'; // a page from disk may have no storage
    }
}

let theme: Theme = storedTheme();

function setTheme(next: Theme): void {
    theme = next;
    document.documentElement.dataset.theme = next === 'auto' ? (systemDark.matches ? 'dark' : 'light') : next;
    try {
        localStorage.setItem('heapwise-theme', next);
    } catch {
        // then it lasts as long as the page is open
    }
    themeListeners.forEach((each) => each());
}

/* Canvases hold the colours of the screen: for paper they are drawn in light ones. */
function printLight(): void {
    addEventListener('beforeprint', () => {
        document.documentElement.dataset.theme = 'light';
        themeListeners.forEach((each) => each());
    });
    addEventListener('afterprint', () => setTheme(theme));
}

/* Calls LISTENER when colours change; returns what ends that. Canvases have to be drawn anew. */
export function onTheme(listener: () => void): () => void {
    themeListeners.add(listener);
    return () => themeListeners.delete(listener);
}

export function isDark(): boolean {
    return document.documentElement.dataset.theme === 'dark';
}

/* ---- keys ---- */

const keys: [string, string][] = [
    ['1 … 9', 'go to a view'],
    ['/', 'filter or search'],
    ['↑ ↓ PgUp PgDn Home End', 'move in a table'],
    ['→ ← Enter', 'open and close a row'],
    ['c', 'copy the place at the cursor as text'],
    ['← → ↑ ↓', 'move in a flame graph, among points, along a timeline'],
    ['PgUp PgDn, + −', 'timeline: moments recorded by place, a shorter or longer range'],
    ['Enter, Backspace, 0', 'flame graph: zoom in, out, all; Back takes one zoom back'],
    ['s', 'flame graph: callers and callees of this function'],
    ['f', 'flame graph: only stacks through this function'],
    ['Esc', 'leave the search; back to everything, and to the whole run'],
    ['t', 'automatic, light or dark colours'],
    ['?', 'this list'],
];

const help = h(
    'dialog',
    { class: 'help', 'aria-label': 'Keys' },
    h('h2', null, 'Keys'),
    h('dl', null, keys.flatMap(([key, what]) => [h('dt', null, h('kbd', null, key)), h('dd', null, what)])),
    h('form', { method: 'dialog' }, h('button', { type: 'submit' }, 'Close')),
);

function nextTheme(): void {
    setTheme(themes[(themes.indexOf(theme) + 1) % themes.length]!);
    say(`Colours: ${theme === 'auto' ? 'as in the system settings' : theme}`);
}

function keyDown(event: KeyboardEvent, views: View[]): void {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey)
        return;
    if (target.closest('input, select, textarea, dialog')) {
        if (event.key === 'Escape' && !target.closest('dialog'))
            target.blur();
        return;
    }
    const number = Number(event.key);
    if (event.key === 'Escape' && !event.defaultPrevented)
        wholeRun();
    else if (event.key === '/') {
        event.preventDefault();
        document.getElementById('search')?.focus();
    } else if (event.key === '?')
        help.showModal();
    else if (event.key === 't')
        nextTheme();
    else if (number >= 1 && number <= views.length && !event.defaultPrevented)
        state.go(views[number - 1]!.key);
}

/* ---- the frame ---- */

function heading(page: Page): HTMLElement {
    const { process } = page.profile.report;
    const program = baseName(process.command?.[0] || process.executable || process.file || '') || 'a program'; // the executable may be one of several names
    document.title = `${program} – Heapwise`;
    const facts = [
        process.pid ? `process ${process.pid}` : process.runs ? format.plural(process.runs, 'run') : '',
        process.duration_ns ? format.duration(process.duration_ns) : '',
        process.allocator ?? '',
    ].filter(Boolean);
    return h(
        'div',
        { class: 'brand' },
        h('h1', null, name(program)),
        h('p', { title: process.command ? format.command(process.command) : null }, page.baseline ? 'compared with a baseline · ' : null, facts.join(' · ')),
    );
}

let undo: (() => void) | void;

function current(tab: HTMLElement): void {
    tab.setAttribute('aria-current', 'page');
    tab.scrollIntoView({ block: 'nearest', inline: 'nearest' });
}

/* What time a view shows, where one was chosen. */
function aboutTime(page: Page, view: View): HTMLElement | null {
    const said = describe(page.profile, view.key !== 'contexts');
    if (!said.length)
        return null;
    const words = view.timed ? said : ['This view shows the whole run: what it shows is not recorded by time.', page.comparison && view.key === 'changes' ? ' Baselines are compared over whole runs.' : ''];
    return h('p', { class: 'range-bar', role: 'status' }, words, ' ', h('button', { type: 'button', onclick: wholeRun, title: 'Escape' }, 'Whole run'));
}

/* All of the run again, in the view that is shown. */
function wholeRun(): void {
    if (state.get('moment') || state.get('from') || state.get('to'))
        state.go(state.view(), { ...state.all(), moment: '', from: '', to: '' });
}

function showView(page: Page, views: View[], main: HTMLElement, tabs: HTMLElement): void {
    const known = views.find((each) => each.key === state.view());
    const wanted = known ?? views[0]!;
    undo?.();
    undo = undefined;
    main.replaceChildren();
    notices.replaceChildren();
    if (!known && state.view())
        tell(`There is no view “${state.view()}” in this page: this is the overview.`);
    main.className = `view ${wanted.key}`;
    for (const tab of tabs.querySelectorAll('a')) {
        tab.href = state.link(tab.dataset.view!);
        if (tab.dataset.view === wanted.key)
            current(tab);
        else
            tab.removeAttribute('aria-current');
    }
    main.append(h('h2', { class: 'offscreen' }, wanted.title));
    if (page.rest && (wanted.key !== 'overview' || Object.keys(state.all()).length)) {
        main.append(h('p', { class: 'loading', role: 'status' }, 'Reading the profile…'));
        return; // it is shown when that ends
    }
    const missing = wanted.missing(page);
    if (missing)
        main.append(h('p', { class: 'empty' }, missing));
    else
        undo = wanted.show(wanted.timed ? atTime(page) : page, main);
    if (wanted.key !== 'overview' && page.profile.leftOut.length)
        main.querySelector('h2')!.after(h('p', { class: 'left-out', role: 'note' }, page.profile.leftOut.join(' ')));
    const about = wanted.key === 'overview' || missing ? null : aboutTime(page, wanted);
    if (about)
        main.querySelector('h2')!.after(about);
    main.prepend(notices);
}

export function start(page: Page, views: View[], root: HTMLElement): void {
    setTheme(theme);
    const main = h('main', { id: 'main', tabindex: -1 });
    const tabs = h(
        'nav',
        { 'aria-label': 'Views' },
        views.map((each, index) =>
            h('a', { href: state.link(each.key), 'data-view': each.key, title: index < 9 ? `key ${index + 1}` : null }, each.title)),
    );
    const header = h(
        'header',
        null,
        heading(page),
        tabs,
        h('div', { class: 'corner' },
            h('button', { type: 'button', onclick: nextTheme, title: 'light or dark (t)', 'aria-label': 'Light or dark colours' }, '◐'),
            h('button', { type: 'button', onclick: () => help.showModal(), title: 'keys (?)', 'aria-label': 'Keys' }, '?')),
    );
    const skip = h('a', { class: 'skip', href: '#main', onclick: (event: Event) => { event.preventDefault(); main.focus(); } }, 'Skip to the view');
    root.replaceChildren();
    add(root, skip, header, main, status, help);
    printLight();
    systemDark.addEventListener('change', () => setTheme(theme));
    addEventListener('keydown', (event) => keyDown(event, views));
    const show = () => showView(page, views, main, tabs);
    onTime(() => tabs.querySelectorAll('a').forEach((tab) => (tab.href = state.link(tab.dataset.view!))));
    state.onChange(show);
    show();
    const know = () => views.forEach((each, index) => tabs.children[index]!.classList.toggle('without', each.missing(page) !== null));
    if (!page.rest)
        know();
    void page.rest?.then(() => {
        know();
        if (main.querySelector('.loading'))
            show();
    });
}
