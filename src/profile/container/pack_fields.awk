# pack_fields.awk - what HW_TAG says of the members of structures (format.h), as tables for pack_schema.c.
#
# Fields stand in the order of their members, but behind those that they refer to: columns are written in this order.

function put(member,    said, parts, i, references) {
    if (done[member]++)
        return
    parts = split(says[member], said, ", *") # tag, predictor, members that it refers to
    for (i = 3; i <= parts; i++) {
        put(said[i])
        references = references ", " (says[said[i]] + 0)
    }
    printf "    F(%d, %s, %s, %s%s),\n", said[1], structure, member, (parts > 1 ? said[2] : "VALUE"), references
}

/^struct hw_[a-z_]+ \{/ {
    structure = $2
    text = added = ""
}

structure && /#include/ { added = $0 "\n" } # rows of numbers.def that are members, too

structure { text = text $0 }

/^};/ && structure {
    count = 0
    split("", says)
    split("", done)
    while (match(text, /[a-z_0-9]+(\[[0-9]+\])? +HW_TAG\([^)]*\)/)) {
        split(substr(text, RSTART, RLENGTH - 1), part, / +HW_TAG\(/)
        text = substr(text, RSTART + RLENGTH)
        if (split(part[1], array, /[][]/) == 1)
            says[order[count++] = part[1]] = part[2]
        for (i = 0; i < array[2]; i++) # the tag is that of the first one
            says[order[count++] = array[1] "[" i "]"] = part[2] + i
    }
    if (count) {
        printf "static const struct hw_pack_field %s[] = {\n", structure
        for (i = 0; i < count; i++)
            put(order[i])
        printf "%s};\n\n", added
    }
    structure = ""
}
