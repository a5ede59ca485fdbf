-- Builds and walks binary trees: about 5 million allocations, nearly all of two small sizes, from recursive code.
-- One tree lives through the whole run, the others die young. The only argument is the depth (default 14).
local function tree(depth)
    if depth == 0 then
        return {}
    end
    return { tree(depth - 1), tree(depth - 1) }
end

local function count(node)
    if node[1] then
        return 1 + count(node[1]) + count(node[2])
    end
    return 1
end

local depth = tonumber(arg and arg[1]) or 14
print("stretch", depth + 1, count(tree(depth + 1)))
local long_lived = tree(depth)
for d = 4, depth, 3 do
    local trees = 19 << (depth - d)
    local nodes = 0
    for _ = 1, trees do
        nodes = nodes + count(tree(d))
    end
    print(trees, d, nodes)
end
print("long-lived", depth, count(long_lived))
