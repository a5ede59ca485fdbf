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
import { flame, prepare } from './flame';
import { hot } from './hot';
import { overview } from './overview';
import { sandwich } from './sandwich';
import { structs } from './structs';

async function main(): Promise<void> {
    const root = document.getElementById('app')!;
    try {
        const holder = document.getElementById('profiles')!;
        const streams = holder.textContent!.trim().split(' ');
        holder.remove();
        const [[profile, baseline], compared] = await Promise.all([
            Promise.all(streams.slice(0, 2).map((each) => Profile.read(each))),
            streams[2] ? Comparison.read(streams[2]) : null,
        ]);
        const page = { profile: profile!, baseline: baseline ?? null, comparison: compared };
        const views = [overview, flame, contexts, sandwich, hot, structs, blocks, allocator];
        start(page, compared ? [...views.slice(0, 4), comparison, ...views.slice(4)] : views, root);
        prepare(page);
    } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        const old = typeof DecompressionStream === 'undefined' ? ' This browser is too old: use a current one.' : '';
        root.replaceChildren(h('p', { class: 'loading', role: 'alert' }, `The profile cannot be shown: ${reason}.${old}`));
    }
}

void main();
