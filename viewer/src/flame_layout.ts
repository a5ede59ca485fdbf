/* flame_layout.ts - which boxes a flame graph has, and what colour they are. Only those that can be seen: the work
 * grows with what is drawn, not with the profile. */
import type { CallTree, Sums } from './tree';

export interface Box {
    node: number;
    row: number; // from the root of what is shown
    x: number;
    width: number; // both 0 to 1
    hidden: number; // 0; else it stands for that many children of NODE that are too narrow to be drawn
}

/* Boxes of the subtree at ROOT, rows one after the other, from the left to the right; ancestors of ROOT, all as wide
 * as everything, come first. Nothing narrower than LEAST. */
export function layout(tree: CallTree, values: Sums, root: number, least: number): Box[] {
    const above: number[] = [];
    for (let node = tree.parent[root]!; node >= 0; node = tree.parent[node]!)
        above.push(node);
    const boxes: Box[] = above.reverse().map((node, row) => ({ node, row, x: 0, width: 1, hidden: 0 }));
    const whole = values.of(root);
    if (!(whole > 0))
        return [...boxes, { node: root, row: above.length, x: 0, width: 1, hidden: 0 }];
    let row: Box[] = [{ node: root, row: above.length, x: 0, width: 1, hidden: 0 }];
    while (row.length) {
        boxes.push(...row);
        const next: Box[] = [];
        for (const box of row) {
            if (box.hidden)
                continue;
            const there = tree.children(box.node).filter((child) => values.of(child) > 0);
            const children = there.filter((child) => values.of(child) / whole >= least);
            children.sort((a, b) => values.of(b) - values.of(a) || tree.name[a]! - tree.name[b]!);
            let x = box.x;
            for (const child of children) {
                next.push({ node: child, row: box.row + 1, x, width: values.of(child) / whole, hidden: 0 });
                x += values.of(child) / whole;
            }
            const hidden = there.length - children.length;
            const rest = hidden ? there.reduce((sum, child) => (values.of(child) / whole < least ? sum + values.of(child) / whole : sum), 0) : 0;
            if (rest >= least)
                next.push({ node: box.node, row: box.row + 1, x, width: rest, hidden });
        }
        row = next;
    }
    return boxes;
}

/* ---- colours ---- */

function hash(text: string): number {
    let value = 2166136261;
    for (let i = 0; i < text.length; i++)
        value = Math.imul(value ^ text.charCodeAt(i), 16777619);
    return (value >>> 0) / 2 ** 32;
}

/* What functions are told apart by. */
export const kinds = [{ system: false, text: 'program' }, { system: true, text: 'system libraries' }] as const;

/* Of a function: the program's own are warm, those of the system's libraries grey. OF is its name, or a shade
 * from 0 to 1. */
export function nameColor(of: string | number, system: boolean, dark: boolean): string {
    const shade = typeof of === 'number' ? of : hash(of);
    if (system)
        return dark ? `hsl(220 6% ${30 + shade * 8}%)` : `hsl(220 10% ${82 + shade * 6}%)`;
    return dark ? `hsl(${18 + shade * 30} ${42 + shade * 12}% ${29 + shade * 8}%)` : `hsl(${22 + shade * 30} ${72 + shade * 14}% ${68 + shade * 9}%)`;
}

/* Of a module, by its rank: neighbours are far apart on the circle of colours. -1: not known. */
export function moduleColor(module: number, dark: boolean): string {
    if (module < 0)
        return dark ? '#3d4249' : '#d9dce1';
    const hue = (30 + module * 137.5) % 360;
    return dark ? `hsl(${hue} 38% 33%)` : `hsl(${hue} 62% 78%)`;
}

/* Of a share from 0 (cold, pale) to 1 (hot). */
export function heatColor(share: number, dark: boolean): string {
    const at = Math.max(0, Math.min(1, share));
    return dark ? `hsl(${44 - 28 * at} ${12 + 56 * at}% ${24 + 12 * at}%)` : `hsl(${48 - 32 * at} ${52 + 34 * at}% ${93 - 31 * at}%)`;
}

/* How hot COUNT is beside the greatest one: a tenth of it is two thirds of the way. */
export function heatShare(count: number, most: number): number {
    return 0.08 + 0.92 * Math.max(0, 1 + Math.log10(count / most) / 3);
}

/* Of a change from -1 (less) to 1 (more). */
export function changeColor(change: number, dark: boolean): string {
    const size = Math.min(1, Math.abs(change)) ** 0.6;
    const hue = change > 0 ? 8 : 212;
    return dark ? `hsl(${hue} ${60 * size}% ${30 + 10 * size}%)` : `hsl(${hue} ${75 * size}% ${90 - 26 * size}%)`;
}
