/* detail.ts - all that is known of one context, as elements and as text to copy. */
import { h, name } from './dom';
import * as format from './format';
import { measures, usual } from './measures';
import { place, type Frame, type Profile } from './model';
import { lineLink } from './source';
import * as state from './state';

const most = 200; // frames that are shown
const listed = 12; // places that a list names

function frameLine(profile: Profile, frame: Frame, head: boolean): HTMLElement {
    return h(
        'li',
        { class: head ? 'head' : null },
        h('a', { href: state.link('sandwich', { f: frame.name }), title: 'callers and callees' }, name(frame.name)),
        h('span', { class: 'place', title: frame.file ? `${frame.file}${frame.line ? `:${frame.line}` : ''}` : frame.module }, h('bdi', null, lineLink(profile, frame.file, frame.line, place(frame)))),
    );
}

function stackList(profile: Profile, frames: Frame[], headline: number): HTMLElement {
    /* Allocation wrappers next to the allocator are folded. */
    let folded = 0;
    while (folded < headline && frames[folded]!.wrapper)
        folded++;
    const wrappers = frames.slice(0, folded);
    return h(
        'ol',
        { class: 'stack' },
        folded > 0 && h('li', { class: 'wrappers' }, h('details', null,
            h('summary', null, `${format.plural(folded, 'allocation wrapper')} folded: `, name(wrappers.map((each) => each.name).join(', '))),
            h('ol', { class: 'stack' }, wrappers.map((frame) => frameLine(profile, frame, false))))),
        frames.slice(folded, Math.max(folded, most)).map((frame, index) => frameLine(profile, frame, index + folded === headline)),
        frames.length > most && h('li', null, `… and ${format.plural(frames.length - most, 'more frame')}`),
    );
}

function facts(profile: Profile, context: number): [string, string][] {
    const found: [string, string][] = [];
    for (const each of measures) {
        const value = each.values(profile)?.[context];
        if (value)
            found.push([each.title, each.format(value)]);
    }
    const least = profile.column('size_min')?.[context];
    const greatest = profile.column('size_max')?.[context];
    if (least !== undefined && greatest !== undefined && greatest > least)
        found.push(['Sizes', `${format.bytes(least)} to ${format.bytes(greatest)}`]);
    if (profile.column('frees')?.[context] && profile.column('lifetime_max_ns'))
        found.push(['Lifetimes', `${format.duration(profile.column('lifetime_min_ns')![context]!)} to ${format.duration(profile.column('lifetime_max_ns')![context]!)}`]);
    if (profile.column('first_ns'))
        found.push(['First block', `after ${format.duration(profile.column('first_ns')![context]!)}`]);
    if (profile.column('never_read')?.[context])
        found.push(['Blocks written, never read', format.count(profile.column('never_read')![context]!)]);
    if (profile.column('pool')?.[context])
        found.push(['Pool', 'blocks of the program’s own allocator; no total includes them']);
    return found;
}

export function detail(profile: Profile, context: number): HTMLElement {
    const frames = profile.stack(context);
    const known = facts(profile, context);
    const type = profile.type(context);
    const id = profile.column('id')![context]!;
    const frees = profile.freeStacks(context).slice(0, 3);
    const freed = frees.map((each) => profile.stackOf(each.leaf).slice(0, 12));
    return h(
        'div',
        { class: 'detail' },
        h(
            'div',
            { class: 'stacks' },
            h('p', { class: 'caption' }, 'Allocated by'),
            stackList(profile, frames, profile.headline[context]!),
            profile.column('incomplete')?.[context] ? h('p', { class: 'caption' }, 'the stack is not complete') : null,
            frees.map((each, index) => [
                h('p', { class: 'caption' }, `Freed by (${format.plural(each.count, 'block')}, ${format.bytes(each.bytes)})`),
                stackList(profile, freed[index]!, -1),
            ]).flat(),
        ),
        h(
            'dl',
            { class: 'facts' },
            type ? [h('dt', null, 'Type'), h('dd', null, name(type))] : null,
            known.flatMap(([key, value]) => [h('dt', null, key), h('dd', null, value)]),
            profile.table('size_limits.most') ? [h('dt', null, 'Histograms'), h('dd', null, h('a', { href: state.link('sizes', { place: id }) }, 'sizes'), ', ', h('a', { href: state.link('sizes', { kind: 'lifetimes', place: id }) }, 'lifetimes'))] : null,
        ),
    );
}

/* One context as text. */
export function asText(profile: Profile, context: number): string {
    const lines = [profile.title(context)];
    const type = profile.type(context);
    lines.push(...facts(profile, context).map(([key, value]) => `  ${key}: ${value}`));
    if (type)
        lines.push(`  Type: ${type}`);
    for (const frame of profile.stack(context))
        lines.push(`    ${frame.name}${frame.file ? `  ${frame.file}:${frame.line}` : `  ${frame.module}`}`);
    return lines.join('\n') + '\n';
}

/* Some of CONTEXTS, those with most first, with links. */
export function placeList(profile: Profile, contexts: number[]): HTMLElement {
    const shown = usual(profile);
    const values = shown.values(profile)!;
    const ids = profile.column('id')!;
    const order = [...contexts].sort((a, b) => values[b]! - values[a]!);
    const all = contexts.length > listed && contexts.length <= 1000 ? h('a', { href: state.link('contexts', { by: 'stack', ids: contexts.map((context) => ids[context]!).join('.') }) }, `all ${format.count(contexts.length)}`) : null;
    return h('div', null, h('ul', { class: 'plain' }, order.slice(0, listed).map((context) => h('li', null,
        h('a', { href: state.link('contexts', { by: 'stack', at: ids[context]! }) }, name(profile.title(context))),
        h('span', { class: 'place' }, shown.format(values[context]!)),
        h('span', { class: 'callers' }, h('bdi', null, `‹ ${profile.callers(context, 3).join(' ‹ ')}`))))), all);
}

/* Links to the places with IDS, those of one name as one link with their number: at most MOST links. */
export function placeLinks(profile: Profile, ids: number[], most: number): HTMLElement[] {
    const byTitle = new Map<string, number[]>();
    for (const id of ids) {
        const context = profile.contextOf(id);
        if (context >= 0) {
            const title = profile.title(context);
            byTitle.set(title, [...(byTitle.get(title) ?? []), id]);
        }
    }
    return [...byTitle].slice(0, most).map(([title, same]) =>
        h('a', { href: same.length > 1 ? state.link('contexts', { by: 'stack', ids: same.slice(0, 1000).join('.') }) : state.link('contexts', { by: 'stack', at: same[0]! }) },
            name(title), same.length > 1 ? ` (${format.plural(same.length, 'place')})` : null));
}

export async function copy(text: string): Promise<boolean> {
    try {
        await navigator.clipboard.writeText(text);
        return true;
    } catch {
        const area = h('textarea', { class: 'offscreen', 'aria-hidden': 'true' });
        area.value = text;
        document.body.append(area);
        area.select();
        const done = document.execCommand('copy');
        area.remove();
        return done;
    }
}
