// llvm.cpp - allocates through templates, inlined and local functions, recursion, lambdas and threads: every kind of frame
// that LLVM's heap profiles have. No two call instructions stand in one place, so that no two contexts look the same.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

struct Node {
    Node *left, *right;
};

__attribute__((noinline)) static Node *tree(int depth)
{
    Node *node = new Node;
    node->left = depth ? tree(depth - 1) : nullptr;
    node->right = depth ? tree(depth - 1) : nullptr;
    return node;
}

__attribute__((noinline)) static void drop(Node *node)
{
    if (node->left)
        drop(node->left);
    if (node->right)
        drop(node->right);
    delete node;
}

template <class T> __attribute__((noinline)) T *make(int count)
{
    T *array = new T[count];
    array[0] = T();
    return array;
}

// Inlined into one caller and not into the other.
static char *inlined(int size)
{
    char *block = new char[size];
    memset(block, 1, size);
    return block;
}

__attribute__((noinline)) char *with()
{
    char *block;
    [[clang::always_inline]] block = inlined(10);
    block[0] = 2;
    return block;
}

__attribute__((noinline)) char *without()
{
    char *block;
    [[clang::noinline]] block = inlined(20);
    block[0] = 3;
    return block;
}

namespace {
struct Local {
    std::vector<int> values;
    __attribute__((noinline)) void push(int count)
    {
        for (int i = 0; i < count; i++)
            values.push_back(i);
    }
};
} // namespace

extern "C" __attribute__((noinline)) void *c_function(size_t size)
{
    void *block = malloc(size);
    memset(block, 0, size);
    return block;
}

#ifdef DUMPS
extern "C" void __memprof_profile_dump();
#endif

int main()
{
    Node *root = tree(3);
    drop(root);
    long *longs = make<long>(5);
    char *chars = make<char>(9);
    char *a = with();
    char *b = without();
    Local local;
    local.push(100);
    std::map<std::string, int> map;
    for (int i = 0; i < 20; i++)
        map[std::string(40, (char)('a' + i))] = i;
    auto lambda = [&](int size) { return std::make_unique<char[]>((size_t)size); };
    auto unique = lambda(77);
    std::thread thread([] {
        double *block = new double[3];
        block[0] = 1;
        asm volatile("" : : "r"(block) : "memory");
        delete[] block;
    });
    thread.join();
    void *c = c_function(123);
    asm volatile("" : : "r"(c), "r"(a), "r"(b), "r"(longs), "r"(chars) : "memory");
#ifdef DUMPS
    __memprof_profile_dump();
    free(c_function(321));
    __memprof_profile_dump();
#endif
    std::vector<std::string> strings;
    for (int i = 0; i < 10; i++)
        strings.push_back(std::string(50, 'x'));
    std::sort(strings.begin(), strings.end());
    return 0;
}
