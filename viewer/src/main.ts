/* main.ts - reads the profiles that stand in the page and shows them. */
import 'uplot/dist/uPlot.min.css';
import './style.css';
import { h } from './dom';
import { Profile } from './model';
import { start } from './shell';
import { allocator } from './allocator';
import { blocks } from './blocks';
import { comparison } from './changes';
import { Comparison } from './comparison';
import { contexts } from './contexts';
import { sizes } from './distributions';
import { flame, prepare } from './flame';
import { hot } from './hot';
import { keeps } from './keeps';
import { memory } from './memory';
import { Dumps } from './moments';
import { overview } from './overview';
import { pinned } from './pinned';
import { sandwich } from './sandwich';
import { source } from './source_view';
import * as state from './state';
import { structs } from './structs';
import type { Page } from './view';

/* The streams behind this script: they are read when the browser has all of the page. */
async function later(): Promise<string[]> {
    if (document.readyState === 'loading')
        await new Promise((done) => document.addEventListener('DOMContentLoaded', done, { once: true }));
    await new Promise((done) => setTimeout(done)); // what can be shown comes first
    const holder = document.getElementById('rests');
    const streams = holder?.textContent?.trim().split(' ').filter(Boolean) ?? [];
    holder?.remove();
    return streams;
}

function trouble(root: HTMLElement, error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    const old = typeof DecompressionStream === 'undefined' ? ' This browser is too old: use a current one.' : '';
    root.removeAttribute('aria-busy');
    root.replaceChildren(h('p', { class: 'loading', role: 'alert' }, `The profile cannot be shown: ${reason}.${old}`));
}

/* The overview of a whole run needs the first part of the page only. */
const enough = () => ['', 'overview'].includes(state.view()) && !Object.keys(state.all()).length;

async function main(): Promise<void> {
    const root = document.getElementById('app')!;
    try {
        const holder = document.getElementById('profiles')!;
        const streams = holder.textContent!.trim().split(' ');
        holder.remove();
        const rests = later();
        const moments = streams.length % 2 ? null : streams.pop()!; // one profile, or two and their comparison, come first
        const [[profile, baseline], compared, dumps] = await Promise.all([
            Promise.all(streams.slice(0, 2).map((each) => Profile.read(each))),
            streams[2] ? Comparison.read(streams[2]) : null,
            moments ? Dumps.read(moments) : null,
        ]);
        profile!.dumps = dumps;
        const page: Page = { profile: profile!, baseline: baseline ?? null, comparison: compared, rest: null };
        page.rest = rests.then(async ([first, second]) => {
            await Promise.all([profile!.readRest(first), baseline?.readRest(second)]);
            page.rest = null;
        });
        if (!enough() || !page.profile.begun)
            await page.rest;
        const views = [overview, flame, contexts, sandwich, hot, structs, blocks, allocator, source, sizes, memory, keeps, pinned];
        start(page, compared ? [...views.slice(0, 4), comparison, ...views.slice(4)] : views, root);
        await page.rest;
        root.removeAttribute('aria-busy');
        prepare(page);
    } catch (error) {
        trouble(root, error);
    }
}

void main();
