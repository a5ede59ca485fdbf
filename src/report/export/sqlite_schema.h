/* sqlite_schema.h - the tables of export_sqlite.c; docs/sqlite.md explains them to people. Columns are NULL where the
 * profile does not have. */
#ifndef HW_REPORT_EXPORT_SQLITE_SCHEMA_H
#define HW_REPORT_EXPORT_SQLITE_SCHEMA_H

/* Raised when a table or column is renamed, removed or means something else: PRAGMA user_version. */
#define HW_SQLITE_VERSION 1

static const char hw_sqlite_code[] =
    "CREATE TABLE profile(key TEXT PRIMARY KEY, value) WITHOUT ROWID;\n"
    "CREATE TABLE modules(id INTEGER PRIMARY KEY, path TEXT, name TEXT, build_id TEXT, kind TEXT NOT NULL,\n"
    "  is_main INTEGER NOT NULL, has_debug_info INTEGER NOT NULL, problem TEXT);\n"
    "CREATE TABLE functions(id INTEGER PRIMARY KEY, name TEXT NOT NULL, linkage_name TEXT, file TEXT, line INTEGER);\n"
    "CREATE TABLE frames(id INTEGER PRIMARY KEY, function_id INTEGER NOT NULL REFERENCES functions(id),\n"
    "  module_id INTEGER REFERENCES modules(id), address INTEGER, file TEXT, line INTEGER, column INTEGER,\n"
    "  inlined INTEGER NOT NULL, wrapper INTEGER NOT NULL);\n";

/* Columns of all numbers follow (profile/numbers.def). */
static const char hw_sqlite_contexts[] =
    "CREATE TABLE contexts(id INTEGER PRIMARY KEY, headline_id INTEGER REFERENCES frames(id), type TEXT,\n"
    "  pool INTEGER NOT NULL, stack_complete INTEGER NOT NULL";

static const char hw_sqlite_tables[] =
    "CREATE TABLE stacks(context_id INTEGER NOT NULL REFERENCES contexts(id), depth INTEGER NOT NULL,\n"
    "  frame_id INTEGER NOT NULL REFERENCES frames(id), PRIMARY KEY(context_id, depth)) WITHOUT ROWID;\n"
    "CREATE TABLE free_stacks(id INTEGER PRIMARY KEY, context_id INTEGER NOT NULL REFERENCES contexts(id),\n"
    "  frees INTEGER NOT NULL, bytes INTEGER NOT NULL);\n"
    "CREATE TABLE free_stack_frames(free_stack_id INTEGER NOT NULL REFERENCES free_stacks(id),\n"
    "  depth INTEGER NOT NULL, frame_id INTEGER NOT NULL REFERENCES frames(id),\n"
    "  PRIMARY KEY(free_stack_id, depth)) WITHOUT ROWID;\n"
    "CREATE TABLE words(context_id INTEGER NOT NULL REFERENCES contexts(id), offset INTEGER NOT NULL,\n"
    "  accesses INTEGER, read_periods INTEGER, written_periods INTEGER,\n"
    "  PRIMARY KEY(context_id, offset)) WITHOUT ROWID;\n"
    "CREATE TABLE sampled_accesses(context_id INTEGER PRIMARY KEY REFERENCES contexts(id),\n"
    "  reads INTEGER NOT NULL, writes INTEGER NOT NULL, lines INTEGER NOT NULL,\n"
    "  lines_false_shared INTEGER NOT NULL);\n"
    "CREATE TABLE timeline(time_ns INTEGER NOT NULL, live_bytes INTEGER NOT NULL, rss_bytes INTEGER,\n"
    "  allocations INTEGER NOT NULL, frees INTEGER NOT NULL);\n"
    "CREATE TABLE memory(moment TEXT PRIMARY KEY, rss INTEGER NOT NULL, heap INTEGER NOT NULL,\n"
    "  file INTEGER NOT NULL, stack INTEGER NOT NULL, heapwise INTEGER NOT NULL, other INTEGER NOT NULL,\n"
    "  swap INTEGER NOT NULL, live_bytes INTEGER NOT NULL) WITHOUT ROWID;\n"
    "CREATE TABLE globals(id INTEGER PRIMARY KEY, module_id INTEGER REFERENCES modules(id), symbol TEXT,\n"
    "  section TEXT, address INTEGER NOT NULL, size INTEGER NOT NULL, sampled INTEGER NOT NULL, reads INTEGER NOT NULL,\n"
    "  writes INTEGER NOT NULL, unsplit INTEGER NOT NULL, shared_granules INTEGER);\n"
    "CREATE TABLE structs(id INTEGER PRIMARY KEY, name TEXT, file TEXT, line INTEGER, size INTEGER NOT NULL,\n"
    "  reads INTEGER NOT NULL, writes INTEGER NOT NULL);\n"
    "CREATE TABLE fields(struct_id INTEGER NOT NULL REFERENCES structs(id), position INTEGER NOT NULL,\n"
    "  name TEXT, type TEXT, offset INTEGER NOT NULL, size INTEGER NOT NULL, bit_offset INTEGER, bit_size INTEGER,\n"
    "  reads INTEGER NOT NULL, writes INTEGER NOT NULL, PRIMARY KEY(struct_id, position)) WITHOUT ROWID;\n"
    "CREATE TABLE findings(rank INTEGER PRIMARY KEY, kind TEXT NOT NULL, title TEXT NOT NULL, why TEXT NOT NULL,\n"
    "  what_to_do TEXT NOT NULL, expected_gain TEXT, struct_id INTEGER REFERENCES structs(id));\n"
    "CREATE TABLE finding_contexts(finding_rank INTEGER NOT NULL REFERENCES findings(rank),\n"
    "  context_id INTEGER NOT NULL REFERENCES contexts(id), PRIMARY KEY(finding_rank, context_id)) WITHOUT ROWID;\n"
    "CREATE TABLE notes(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, text TEXT NOT NULL);\n"
    "CREATE VIEW places AS SELECT c.*, f.name AS function, h.file AS file, h.line AS line, m.name AS module\n"
    "  FROM contexts c LEFT JOIN frames h ON h.id = c.headline_id LEFT JOIN functions f ON f.id = h.function_id\n"
    "  LEFT JOIN modules m ON m.id = h.module_id;\n"
    "CREATE VIEW stack_lines AS SELECT s.context_id, s.depth, f.name AS function, h.file, h.line, m.name AS module,\n"
    "  h.inlined FROM stacks s JOIN frames h ON h.id = s.frame_id JOIN functions f ON f.id = h.function_id\n"
    "  LEFT JOIN modules m ON m.id = h.module_id;\n";

/* Made when the tables are full. */
static const char hw_sqlite_indexes[] = "CREATE INDEX stacks_frame ON stacks(frame_id);\n"
                                        "CREATE INDEX frames_function ON frames(function_id);\n"
                                        "CREATE INDEX frames_module ON frames(module_id);\n"
                                        "CREATE INDEX functions_name ON functions(name);\n"
                                        "CREATE INDEX contexts_headline ON contexts(headline_id);\n"
                                        "CREATE INDEX contexts_type ON contexts(type);\n"
                                        "CREATE INDEX free_stacks_context ON free_stacks(context_id);\n"
                                        "CREATE INDEX finding_contexts_context ON finding_contexts(context_id);\n";

#endif
