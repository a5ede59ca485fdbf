/* source.ts - the lines of source files that the page has, and links to them. */
import { h } from './dom';
import * as state from './state';
import type { Profile } from './model';

export interface SourceLine {
    number: number;
    text: string;
}

export interface SourceFile {
    number: number; // of its name, as frames have it
    name: string;
    path: string; // what was read; '': nothing
    problem: string; // a sentence; '': none
    lines: SourceLine[]; // ascending; not all of the file
}

function read(profile: Profile): Map<number, SourceFile> {
    const files = new Map<number, SourceFile>();
    const counts = profile.table('source.lines');
    const numbers = profile.table('line.number');
    const texts = profile.table('line.text');
    let at = 0;
    profile.table('source.file')?.forEach((number, index) => {
        const lines = Array.from({ length: counts?.[index] ?? 0 }, () => ({ number: numbers?.[at] ?? 0, text: profile.fileName(texts?.[at++] ?? 0) }));
        files.set(number, { number, name: profile.fileName(number), path: profile.fileName(profile.table('source.path')?.[index] ?? 0), problem: profile.fileName(profile.table('source.problem')?.[index] ?? 0), lines });
    });
    return files;
}

const known = new WeakMap<Profile, Map<number, SourceFile>>();
const knownNames = new WeakMap<Profile, Set<string>>(); // of files with lines

/* By number of the name; empty where the page was written without them. */
export function sourceOf({ whole: profile }: Profile): Map<number, SourceFile> {
    const files = known.get(profile) ?? read(profile);
    known.set(profile, files);
    if (!knownNames.has(profile))
        knownNames.set(profile, new Set([...files.values()].filter((each) => each.lines.length).map((each) => each.name)));
    return files;
}

export function hasSource(profile: Profile): boolean {
    return profile.table('source.file') !== null;
}

/* The address of a line in the source view; '' where the page does not have the file. */
export function toLine(profile: Profile, file: string, line: number, value = ''): string {
    return sourceOf(profile).size && knownNames.get(profile.whole)!.has(file) ? state.link('source', { file, line: line || '', value }) : '';
}

/* TEXT, as a link to the line where the page has it. */
export function lineLink(profile: Profile, file: string, line: number, text: string | HTMLElement): HTMLElement | string {
    const to = toLine(profile, file, line);
    return to ? h('a', { href: to, title: 'source' }, text) : text;
}
