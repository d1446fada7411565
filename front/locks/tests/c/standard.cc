// C++'s own locks, whose constructors make no call.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

static std::mutex mutex;
static std::recursive_mutex recursive;
static std::timed_mutex timed;
static std::condition_variable condition;
static int turns, total;

static void turn(int own)
{
    for (int i = 0; i < 500; i++) {
        std::unique_lock<std::mutex> lock(mutex);
        condition.wait(lock, [own] { return turns % 3 == own; });
        turns++;
        condition.notify_all();
        std::lock_guard<std::recursive_mutex> outer(recursive), inner(recursive);
        total++;
    }
}

int main()
{
    std::vector<std::thread> threads;
    for (int own = 0; own < 3; own++)
        threads.emplace_back(turn, own);
    for (auto &thread : threads)
        thread.join();
    timed.lock();
    bool got = true;
    std::thread([&] { got = timed.try_lock_for(std::chrono::milliseconds(20)); }).join();
    timed.unlock();
    std::unique_lock<std::mutex> lock(mutex);
    auto status = condition.wait_for(lock, std::chrono::milliseconds(5));
    std::printf("turns %d, total %d, got %d, timed out %d\n", turns, total, got, status == std::cv_status::timeout);
}
