// fields.h - counting fields of structs: what the files of this part give each other.
//
//   field_types.cpp debugging information -> structs and their fields, with names and identities field_marks.cpp the
//   early step: each access gets to know the struct and the offset that the source names field_resolve.cpp the late
//   step: what the accesses that are left are accesses to field_groups.cpp …accesses that are executed together, with
//   one counter for all of them field_table.cpp …and the module's table, which says what its counters mean
#ifndef HW_PASS_FIELDS_H
#define HW_PASS_FIELDS_H

#include "pass.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include <map>
#include <memory>
#include <set>

#define _Static_assert static_assert // the profile's format is written in C
#include "profile/format.h"
#undef _Static_assert

namespace hw
{

// ---- field_types.cpp ----

// A field as the profile has it (struct hw_field), nested structs taken apart.
struct field {
    std::string name, type, declaration;
    uint32_t flags = 0; // enum hw_field_flags
    uint64_t offset = 0, size = 0;
    uint32_t bit_offset = 0, bit_size = 0;
    uint32_t alignment = 1, line = 0;
    uint64_t member_offset = 0, member_size = 0;
    uint32_t member_alignment = 1;
    const llvm::DICompositeType *element = nullptr; // of an array of structs
    llvm::DICompositeType *part = nullptr;          // a base or a struct by value that it lies in: struct hw_field
    uint64_t part_offset = 0;
};

struct structure {
    std::string name, file;
    uint32_t line = 0, flags = 0; // enum hw_struct_flags
    uint32_t alignment = 1;
    uint64_t size = 0, identity = 0;
    std::vector<field> fields; // sorted by offset, then bit offset
};

// Typedefs and qualifiers taken off. May be nullptr (void).
llvm::DIType *strip(llvm::DIType *type);
// The struct, class or union that TYPE is under its typedefs and qualifiers; else nullptr.
llvm::DICompositeType *as_composite(llvm::DIType *type);
// What a pointer or reference leads to; nullptr if TYPE is none, or leads to void.
llvm::DIType *pointee(llvm::DIType *type);
bool is_pointer(llvm::DIType *type);
uint64_t size_of(llvm::DIType *type);
// The element of an array type, however many dimensions it has; else nullptr.
llvm::DIType *element_of(llvm::DIType *type);

// The types of a module.
class type_table
{
    std::map<const llvm::DICompositeType *, std::unique_ptr<structure>> described;
    std::map<const llvm::DICompositeType *, std::string> typedef_names;
    std::map<std::string, llvm::SmallVector<llvm::DICompositeType *, 1>> by_name; // without scopes and arguments
    std::map<std::string, llvm::DICompositeType *> by_identifier;
    bool cplusplus = false;

    std::string scope_of(const llvm::DIScope *scope) const;
    void flatten(structure &to, const llvm::DICompositeType *type, uint64_t offset_bits, const std::string &prefix,
                 const field *member, const field *around, uint32_t flags, unsigned depth);
    uint32_t alignment_of(llvm::DIType *type, unsigned depth) const;

  public:
    explicit type_table(llvm::Module &m);
    // The complete type that a declaration stands for; TYPE itself if there is none.
    llvm::DICompositeType *definition(llvm::DICompositeType *type) const;
    std::string name_of(const llvm::DICompositeType *type) const;
    std::string text_of(llvm::DIType *type, const std::string &inner = std::string()) const;
    const structure &describe(llvm::DICompositeType *type);
    // The struct that clang gave the LLVM type to, if there is only one of that name and size.
    llvm::DICompositeType *by_llvm_type(const llvm::StructType *type, uint64_t size);
    bool named_like(const llvm::DICompositeType *type, const llvm::StructType *like) const;
    // The base type of a struct-path tag.
    llvm::DICompositeType *by_tbaa_name(llvm::StringRef name, const llvm::MDNode *node);
    bool is_cplusplus() const
    {
        return cplusplus;
    }
};

// ---- places ----

// What lies at an address: OFFSET bytes into a ROOT, or, without a root, something of TYPE that is no struct.
//
// A root that is an element of an array in another struct has that AROUND it: what is done to "o->points[i].x" is done
// to x of a point, and to the array `points` of an outer as well. These are metadata, for marks and to be compared as
// pointers: !{struct, offset of the array in it, what is around that struct in turn}, from the innermost one out.
struct place {
    llvm::DICompositeType *root = nullptr;
    uint64_t offset = 0;
    bool dynamic = false; // somewhere in the array that lies at OFFSET
    bool known = false;
    llvm::DIType *type = nullptr;
    const llvm::MDNode *around = nullptr;
};

// One link of place::around, taken apart.
struct enclosing {
    llvm::DICompositeType *root;
    uint64_t offset;
    const llvm::MDNode *around;
};
enclosing enclosing_at(const llvm::MDNode *around);
// An element, a struct ELEMENT, of the array that begins at BEGIN of what lies at OF.
place place_of_element(const type_table &types, const place &of, uint64_t begin, llvm::DICompositeType *element);
// As sure as both: unknown if they differ; and if they differ only in what is around them, nothing is.
place common_place(const place &a, const place &b);

// The place of an object of TYPE.
place place_of_object(const type_table &types, llvm::DIType *type);
// Where a pointer that lies at AT leads to.
place place_behind(const type_table &types, const place &at);
// The struct INNER, or something of its kind, lies at OFFSET of ROOT (not as an element of an array).
bool contains(const type_table &types, llvm::DICompositeType *root, uint64_t offset,
              llvm::function_ref<bool(llvm::DICompositeType *)> is_wanted);
// The innermost array at OFFSET of ROOT: its element type, and where it begins.
llvm::DIType *array_at(const type_table &types, llvm::DICompositeType *root, uint64_t offset, uint64_t *begin);

// ---- field_marks.cpp ----

// What the early step found out about a module, for the late one of the same process.
struct early_facts {
    std::shared_ptr<type_table> types;
    std::map<const llvm::DICompositeType *, uint32_t> struct_flags;
    std::map<const llvm::DICompositeType *, std::set<uint64_t>> escaping; // offsets
    // Pointers to these types go to functions that are not in the module; true: which declare such a parameter.
    std::map<std::pair<llvm::DICompositeType *, std::string>, bool> outside;
    // By function, line, column, bytes and kind of access. ROOT of those that are ambiguous: nullptr.
    std::map<std::vector<uint64_t>, place> by_location;
    // By function, line and column: whether all accesses there are of no struct.
    std::map<std::vector<uint64_t>, bool> scalar_positions;
};
early_facts &facts_of(llvm::Module &m);
std::vector<uint64_t> position_key(const llvm::Instruction &i);
std::vector<uint64_t> location_key(const llvm::Instruction &i, uint64_t bytes, bool write);

// Marks the accesses of M: !heapwise.field.
void mark_fields(llvm::Module &m);
// The mark of I; SOURCE: of the memory that a copy reads. Unknown without a mark; known and without a root: no struct.
place marked_place(const llvm::Instruction &i, bool source);
void drop_marks(llvm::Function &f);

// ---- field_resolve.cpp ----

// One access that is left after optimisation.
struct field_access {
    llvm::Instruction *at;
    llvm::Value *pointer;
    uint64_t bytes;     // 0: not known
    llvm::Value *times; // how often, if that is not once; BYTES is then that of one time
    bool reads, writes;
    bool source = false;         // the memory that a copy reads
    place what;                  // known, and without a root: of no struct
    llvm::Value *base = nullptr; // object: base + terms + object_offset
    std::vector<uint64_t> terms;
    int64_t offset = 0, object_offset = 0;
};
typedef std::vector<field_access> access_list;
access_list resolve_fields(llvm::Function &f, early_facts &facts);

// ---- field_table.cpp ----

struct group_member {
    uint32_t field; // of the struct; HW_NONE: each
    uint32_t reads, writes;
    bool inherited;
};

// A variable of the module: the distance of its counters from the plane (HW_ABI_FIELDS).
llvm::GlobalVariable *fields_base(llvm::Module &m);

// The structs, groups and counters of one module.
class field_table
{
    llvm::Module &m;
    early_facts &facts;
    llvm::MapVector<llvm::DICompositeType *, uint32_t> structs;
    struct group {
        uint32_t structure, function, file, line, counter, object;
        std::vector<group_member> members;
    };
    std::vector<group> groups;
    std::string strings = std::string(1, '\0');
    std::map<std::string, uint32_t> offsets;
    uint32_t counters = 0;

    uint32_t text(const std::string &string);
    std::vector<std::pair<llvm::DICompositeType *, llvm::Function *>> outside();
    void finish_outside();

  public:
    field_table(llvm::Module &m, early_facts &facts) : m(m), facts(facts)
    {
    }
    const structure &describe(llvm::DICompositeType *type)
    {
        return facts.types->describe(type);
    }
    uint32_t new_counter()
    {
        return counters++;
    }
    // ROOT nullptr: accesses of which it is not known to what. OBJECT: struct hw_field_group has it.
    void add_group(llvm::DICompositeType *root, std::vector<group_member> members, uint32_t counter, uint32_t object,
                   const llvm::DebugLoc &location, const llvm::Function &f);
    // Makes the table, and has it registered at the start.
    void finish();
};

// ---- field_groups.cpp ----

// Counters for the accesses of F: updates of kind `field`.
update_list count_fields(llvm::Function &f, llvm::FunctionAnalysisManager &analyses, early_facts &facts,
                         field_table &table);

} // namespace hw

#endif
