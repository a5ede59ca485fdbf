/* program.c - orders in blocks of their own, which are summed up many times in an order that has nothing to do with where
 * they lie: how long that takes depends on how many cache lines an order is spread over.
 *
 *     program [ORDERS [ROUNDS]]      prints the sum, and what a round took
 *
 * LAYOUT is the header with struct order: "order.h" unless given. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef LAYOUT
#define LAYOUT "order.h"
#endif
#include LAYOUT

static struct order *new_order(long id)
{
    struct order *order = malloc(sizeof *order);
    if (!order)
        exit(1);
    order->id = id;
    snprintf(order->customer, sizeof order->customer, "customer %ld", id % 1000);
    snprintf(order->item, sizeof order->item, "item %ld", id % 77);
    order->reference[0] = order->note[0] = order->address[0] = order->phone[0] = 0;
    order->priority = id % 3;
    order->clerk = (int)(id % 11);
    order->price = id % 97;
    order->amount = id % 13;
    order->state = id % 5 != 0;
    order->discount = id % 7;
    order->zip = (int)(id % 999);
    order->shipped = 0;
    return order;
}

/* What is used of an order here: price, amount, discount and state. */
__attribute__((noinline)) static long turnover(struct order *const *orders, size_t count)
{
    long sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (orders[i]->price * orders[i]->amount - orders[i]->discount) * orders[i]->state;
    return sum;
}

static void shuffle(struct order **orders, size_t count)
{
    unsigned long random = 88172645463325252;
    for (size_t i = count; i > 1; i--) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        const size_t other = random % i;
        struct order *order = orders[i - 1];
        orders[i - 1] = orders[other];
        orders[other] = order;
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    const size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 500000;
    const unsigned long rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 20;
    struct order **orders = calloc(count, sizeof *orders);
    double best = 1e9;
    long sum = 0;
    if (!orders)
        return 1;
    for (size_t i = 0; i < count; i++)
        orders[i] = new_order((long)i);
    shuffle(orders, count);
    for (unsigned long round = 0; round < rounds; round++) {
        const double start = now();
        sum += turnover(orders, count);
        const double took = now() - start;
        best = took < best ? took : best;
    }
    printf("%ld\n", sum);
    fprintf(stderr, "%.2f ms a round\n", best * 1000);
    return 0;
}
