/* filter.ts - which contexts a text asks for.
 *
 *     parse bytes>1M lifetime-or-age<10ms -json type:node
 *
 * Words are looked for in the functions and files of the whole stack, in any case of letters; every one has to be
 * there, those with a minus must not. KEY>VALUE, with < >= <= =, compares a measure; values take the units of the page. */
import { measure, newKey } from './measures';
import type { Profile } from './model';

const scales: Record<string, number> = {
    '': 1, b: 1, k: 1024, kib: 1024, kb: 1024, m: 1 << 20, mib: 1 << 20, mb: 1 << 20, g: 2 ** 30, gib: 2 ** 30, gb: 2 ** 30,
    t: 2 ** 40, tib: 2 ** 40, ns: 1, us: 1e3, 'µs': 1e3, ms: 1e6, s: 1e9, min: 60e9, h: 3600e9, '%': 0.01,
};

const compare: Record<string, (a: number, b: number) => boolean> = {
    '>': (a, b) => a > b,
    '<': (a, b) => a < b,
    '>=': (a, b) => a >= b,
    '<=': (a, b) => a <= b,
    '=': (a, b) => a === b,
};

export interface Filter {
    mask: Uint8Array | null; // null: everything
    problem: string; // of the text; '' when it was understood
}

/* The nodes whose stack has WORD in a function's or a file's name. */
function nodesWith(profile: Profile, word: string): Uint8Array {
    const names = Uint8Array.from(profile.names, (name) => (name.toLowerCase().includes(word) ? 1 : 0));
    const files = profile.filesWith(word);
    const locations = new Uint8Array(profile.firstFrame.length);
    for (let at = 0; at + 1 < locations.length; at++)
        for (let i = profile.firstFrame[at]!; i < profile.firstFrame[at + 1]!; i++)
            if (names[profile.frameName[i]!] || files[i])
                locations[at] = 1;
    const nodes = new Uint8Array(profile.parent.length);
    for (let node = 1; node < nodes.length; node++)
        nodes[node] = nodes[profile.parent[node]!] || locations[profile.location[node]!] ? 1 : 0;
    return nodes;
}

export function filter(profile: Profile, text: string): Filter {
    const words = text.match(/"[^"]*"|\S+/g) ?? [];
    if (!words.length)
        return { mask: null, problem: '' };
    const mask = new Uint8Array(profile.count).fill(1);
    let problem = '';
    for (const written of words) {
        const comparison = /^([a-z-]+)(>=|<=|>|<|=)([\d.]+)\s*([a-zµ%]*)$/i.exec(written);
        const values = comparison && measure(comparison[1]!)?.values(profile);
        if (comparison) {
            const scale = scales[comparison[4]!.toLowerCase()];
            const limit = Number(comparison[3]) * (scale ?? NaN);
            if (!values || Number.isNaN(limit)) {
                problem = values ? `Unknown unit in “${written}”` : `Unknown filter “${comparison[1]}”; try peak, bytes, size …`;
                continue;
            }
            const now = newKey(comparison[1]!);
            if (now)
                problem = `“${comparison[1]}” is now called “${now}”`;
            for (let i = 0; i < mask.length; i++)
                mask[i]! &= compare[comparison[2]!]!(values[i]!, limit) ? 1 : 0;
            continue;
        }
        const without = written.startsWith('-') && written.length > 1;
        const word = written.slice(without ? 1 : 0).replaceAll('"', '').toLowerCase();
        if (word.startsWith('type:')) {
            for (let i = 0; i < mask.length; i++)
                mask[i]! &= Number(profile.type(i).toLowerCase().includes(word.slice(5)) !== without);
            continue;
        }
        const nodes = nodesWith(profile, word);
        for (let i = 0; i < mask.length; i++)
            mask[i]! &= Number(Boolean(nodes[profile.leaf[i]!]) !== without);
    }
    return { mask, problem };
}
