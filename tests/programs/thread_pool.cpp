/* thread_pool.cpp - 300 threads of one std::thread pool, called worker-0 to worker-299, each with a block of 1000 bytes
 * while all of them live. Or, with an argument, threads of several functions one after the other, named after theirs.
 */
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <pthread.h>
#include <string>
#include <thread>
#include <vector>

enum { WORKERS = 300 };

static std::mutex lock;
static std::condition_variable changed;
static int at_work;

static void serve(int number)
{
    pthread_setname_np(pthread_self(), ("worker-" + std::to_string(number)).c_str());
    void *volatile block = malloc(1000);
    std::unique_lock<std::mutex> hold(lock);
    at_work++;
    changed.notify_all();
    changed.wait(hold, [] { return at_work == WORKERS; });
    free(block);
}

__attribute__((noinline)) static void start_pool(std::vector<std::thread> &pool)
{
    for (int i = 0; i < WORKERS; i++)
        pool.emplace_back(serve, i);
}

static void *volatile kept[10];

__attribute__((noinline)) static void handle()
{
    pthread_setname_np(pthread_self(), "handle");
    for (void *volatile &block : kept)
        block = malloc(100);
}

__attribute__((noinline)) static void log_lines()
{
    pthread_setname_np(pthread_self(), "log_lines");
    for (int i = 0; i < 10; i++) {
        void *volatile block = malloc(1000);
        free(block);
    }
}

__attribute__((noinline)) static void release()
{
    pthread_setname_np(pthread_self(), "release");
    for (void *volatile &block : kept)
        free(block);
}

static void run_after_another(bool mixed)
{
    for (int i = 0; i < 5; i++) {
        std::thread(handle).join();
        if (mixed)
            std::thread(log_lines).join();
    }
    if (mixed)
        std::thread(release).join();
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        run_after_another(std::string(argv[1]) == "mixed");
        return 0;
    }
    std::vector<std::thread> pool;
    pool.reserve(WORKERS);
    start_pool(pool);
    for (std::thread &each : pool)
        each.join();
}
