/* keeps_model.ts - who keeps what the program can reach: keepers as a tree with the places of their blocks below them,
 * and for each place what points to it. Read from what src/report/page/page_keeps.c has written: the greatest rows. */
import type { Profile } from './model';

/* A box of the drawing: a keeper, the blocks of places of one name below one, or those of a place. */
export interface Box {
    id: string; // "k12", "p34" below the box above: how the address names it
    kind: string; // of a keeper, as in the JSON report; "place"
    name: string;
    module: string; // '' when not known
    type: string; // what it is declared to point to, '' when not known
    bytes: number;
    blocks: number;
    pointers: number; // in it
    place: number; // -1: none, or several
    keeper: number; // -1: of places
    parent: Box | null;
    below: Box[]; // most bytes first
}

/* Where a pointer is: in a keeper, or in blocks of a context. */
export interface Source {
    name: string; // of the keeper, '' where it is a place
    keeper: number; // -1: not in the page
    context: number; // -1: a keeper, or a place that is not in the page
    offset: number;
    pointers: number;
    momentary: boolean;
}

export interface Place {
    context: number;
    blocks: number;
    bytes: number;
    retainedBlocks: number;
    retainedBytes: number;
    pointers: number;
    sourceCount: number;
    sources: Source[]; // most pointers first; not all
    way: Source[]; // from the keeper to the last place before this one
    wayLeftOut: number;
    kept: { keeper: number; bytes: number; blocks: number }[]; // most first; not all
}

const momentary = 'several_threads';

/* What is below BOX, with one box for places of one name. */
function byName(box: Box): Box[] {
    const groups = new Map<string, Box[]>();
    for (const each of box.below)
        if (each.place >= 0)
            groups.set(each.name, [...(groups.get(each.name) ?? []), each]);
    const sum = (all: Box[], of: 'bytes' | 'blocks') => all.reduce((value, each) => value + each[of], 0);
    const joined = [...groups].map(([name, all], index): Box => all.length === 1 ? all[0]!
        : { id: `g${index}`, kind: 'place', name, module: '', type: '', bytes: sum(all, 'bytes'), blocks: sum(all, 'blocks'), pointers: 0, place: -1, keeper: -1, parent: box, below: all });
    return [...box.below.filter((each) => each.place < 0), ...joined];
}

export class Keeps {
    readonly blocks: number;
    readonly bytes: number;
    readonly placeCount: number;
    readonly places: Place[] = []; // what keeps most first
    readonly all: Box;
    readonly boxes: Box[] = []; // by keeper
    readonly warnings: string[] = [];

    constructor(private readonly profile: Profile) {
        const column = (name: string) => profile.table(name) ?? new Float64Array(0);
        const info = column('keeps.info');
        [this.blocks, this.bytes, this.placeCount] = [info[0] ?? 0, info[1] ?? 0, info[8] ?? 0];
        if (info[3])
            this.warnings.push('There was no room for all blocks.');
        if (info[4])
            this.warnings.push('There was no room for all pointers: ways and places that keep most may be wrong, what variables keep is right.');
        const names = column('keeper.name'), kinds = column('keeper.kind'), modules = column('keeper.module'), parents = column('keeper.parent'), types = column('keeper.type');
        const ids = column('keeper.id'), retained = column('keeper.retained_bytes'), blocks = column('keeper.retained_blocks'), pointers = column('keeper.pointers');
        ids.forEach((id, keeper) => this.boxes.push({
            id: `k${id}`, kind: profile.fileName(kinds[keeper]!), name: profile.fileName(names[keeper]!), module: profile.fileName(modules[keeper]!), type: profile.fileName(types[keeper] ?? 0),
            bytes: retained[keeper]!, blocks: blocks[keeper]!, pointers: pointers[keeper]!, place: -1, keeper, parent: this.boxes[parents[keeper]! - 1] ?? null, below: [],
        }));
        this.readPlaces(column);
        this.all = { id: '', kind: 'all', name: 'all that can be reached', module: '', type: '', bytes: this.bytes, blocks: this.blocks, pointers: 0, place: -1, keeper: -1, parent: null, below: [] };
        this.join(column);
    }

    private readPlaces(column: (name: string) => Float64Array): void {
        const [contexts, blocks, bytes, retained, retainedBlocks] = ['context', 'blocks', 'bytes', 'retained_bytes', 'retained_blocks'].map((name) => column(`keeps_place.${name}`));
        const [pointers, sourceCount, steps, leftOut] = ['pointers', 'sources', 'steps', 'steps_left_out'].map((name) => column(`keeps_place.${name}`));
        const row = (table: string) => {
            const [name, keeper, context, offset, count, brief] = ['name', 'keeper', 'context', 'offset', 'pointers', 'momentary'].map((each) => column(`${table}.${each}`));
            return (at: number): Source => ({ name: this.profile.fileName(name![at] ?? 0), keeper: (keeper![at] ?? 0) - 1, context: (context![at] ?? 0) - 1, offset: offset![at] ?? 0, pointers: count![at] ?? 0, momentary: Boolean(brief![at]) });
        };
        const pointed = row('pointed'), way = row('way');
        let source = 0, step = 0;
        contexts!.forEach((context, place) => {
            const shown = Math.min(8, sourceCount![place]!);
            this.places.push({
                context, blocks: blocks![place]!, bytes: bytes![place]!, retainedBytes: retained![place]!, retainedBlocks: retainedBlocks![place]!, pointers: pointers![place]!, sourceCount: sourceCount![place]!,
                sources: Array.from({ length: shown }, () => pointed(source++)), way: Array.from({ length: steps![place]! }, () => way(step++)).reverse(), wayLeftOut: leftOut![place]!, kept: [],
            });
        });
    }

    /* Who is below whom. A keeper that has nothing but one other below it is that one. */
    private join(column: (name: string) => Float64Array): void {
        const keepers = column('kept.keeper'), places = column('kept.place'), bytes = column('kept.bytes'), blocks = column('kept.blocks'), own = column('keeper.bytes');
        for (const box of this.boxes)
            box.parent?.below.push(box);
        keepers.forEach((keeper, index) => {
            const box = this.boxes[keeper - 1], place = this.places[places[index]! - 1];
            if (!box || !place)
                return;
            place.kept.push({ keeper: keeper - 1, bytes: bytes[index]!, blocks: blocks[index]! });
            box.below.push({ id: `p${places[index]! - 1}`, kind: 'place', name: this.profile.title(place.context), module: '', type: '', bytes: bytes[index]!, blocks: blocks[index]!, pointers: 0, place: places[index]! - 1, keeper: -1, parent: box, below: [] });
        });
        for (const place of this.places)
            place.kept.sort((a, b) => b.bytes - a.bytes);
        const several = this.boxes.filter((box) => !box.parent); // those above variables, and above threads
        for (const box of several) {
            for (const below of box.below.filter((each) => each.keeper >= 0))
                this.all.below.push(below);
            box.below = box.below.filter((each) => each.keeper < 0);
            box.bytes = own[box.keeper]!;
            box.blocks = column('keeper.blocks')[box.keeper]!;
            box.name = box.kind === momentary ? 'stacks of several threads together' : 'several of these together';
            if (box.bytes)
                this.all.below.push(box);
        }
        const shorten = (box: Box): Box => {
            for (let only = box.below[0]; box.keeper >= 0 && box.below.length === 1 && only && only.keeper >= 0 && only.bytes === box.bytes; only = box.below[0])
                box = only;
            box.below = box.place < 0 && box.keeper >= 0 ? byName(box) : box.below;
            box.below = box.below.map(shorten).filter((each) => each.bytes > 0).sort((a, b) => b.bytes - a.bytes);
            for (const each of box.below)
                each.parent = box;
            return box;
        };
        shorten(this.all);
    }

    /* The box of a keeper by its number in the report; null when it is not in the page. */
    find(id: string): Box | null {
        const box = this.boxes.find((each) => each.id === id);
        for (let above: Box | null = box ?? null; above; above = above.parent)
            if (above === this.all)
                return box!;
        return null;
    }

    nameOf(keeper: number): string {
        return this.boxes[keeper]?.name ?? '';
    }
}

const known = new WeakMap<Profile, Keeps | null>();

export function keepsOf(profile: Profile): Keeps | null {
    const whole = profile.whole;
    if (!known.has(whole))
        known.set(whole, whole.table('keeps.info') ? new Keeps(whole) : null);
    return known.get(whole)!;
}
