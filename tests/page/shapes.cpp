/* shapes.cpp - a program with something for every view: hot and cold blocks, structs, words, globals, two threads. */
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>

struct node {
    node *next;
    long key;
    char name[40];
    double weight;
    int flags;
    long rest[4];
    long hot;
};

long counters[2][8];

static node *make_node(int i)
{
    node *made = new node();
    made->key = i;
    return made;
}

static void *cold_table()
{
    char *table = (char *)malloc(1 << 20);
    memset(table, 1, 1 << 12);
    return table;
}

static long walk(node *list, int times)
{
    long sum = 0;
    for (int i = 0; i < times; i++)
        for (node *at = list; at; at = at->next) {
            sum += at->key;
            at->hot += sum & 1;
        }
    return sum;
}

static void strings()
{
    std::map<std::string, int> found;
    for (int i = 0; i < 10000; i++)
        found["key number " + std::to_string(i * 7919 % 2500)] += i;
    for (int i = 0; i < 10000; i++)
        counters[0][0]++;
}

static void temporary()
{
    for (int i = 0; i < 50000; i++) {
        volatile char *block = (char *)malloc(16 + i % 64);
        block[0] = 1;
        free((void *)block);
        counters[0][1]++;
    }
}

int main()
{
    node *list = nullptr;
    for (int i = 0; i < 10000; i++) {
        node *made = make_node(i);
        made->next = list;
        list = made;
    }
    void *volatile cold = cold_table();
    std::thread one(strings), two(temporary);
    const long sum = walk(list, 20);
    one.join();
    two.join();
    while (list) {
        node *next = list->next;
        delete list;
        list = next;
    }
    return sum == 1 && cold;
}
