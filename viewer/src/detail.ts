/* detail.ts - all that is known of one context, as elements and as text to copy. */
import { h, name } from './dom';
import * as format from './format';
import { measures } from './measures';
import { place, type Frame, type Profile } from './model';
import * as state from './state';

const most = 200; // frames that are shown

function frameLine(frame: Frame, head: boolean): HTMLElement {
    return h(
        'li',
        { class: head ? 'head' : null },
        h('a', { href: state.link('sandwich', { f: frame.name }), title: 'callers and callees' }, name(frame.name)),
        h('span', { class: 'place', title: frame.file ? `${frame.file}${frame.line ? `:${frame.line}` : ''}` : frame.module }, h('bdi', null, place(frame))),
    );
}

function stackList(frames: Frame[], headline: number): HTMLElement {
    return h(
        'ol',
        { class: 'stack' },
        frames.slice(0, most).map((frame, index) => frameLine(frame, index === headline)),
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
    const frees = profile.freeStacks(context).slice(0, 3);
    const freed = frees.map((each) => profile.stackOf(each.leaf).slice(0, 12));
    return h(
        'div',
        { class: 'detail' },
        h(
            'div',
            { class: 'stacks' },
            h('p', { class: 'caption' }, 'Allocated by'),
            stackList(frames, profile.headline[context]!),
            profile.column('incomplete')?.[context] ? h('p', { class: 'caption' }, 'the stack is not complete') : null,
            frees.map((each, index) => [
                h('p', { class: 'caption' }, `Freed by (${format.plural(each.count, 'block')}, ${format.bytes(each.bytes)})`),
                stackList(freed[index]!, -1),
            ]).flat(),
        ),
        h(
            'dl',
            { class: 'facts' },
            type ? [h('dt', null, 'Type'), h('dd', null, name(type))] : null,
            known.flatMap(([key, value]) => [h('dt', null, key), h('dd', null, value)]),
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
