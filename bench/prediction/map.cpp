/* map.cpp - a std::map of strings grows, is walked through, and loses a third of its entries, four times. */
#include <cstdio>
#include <map>
#include <random>
#include <string>

int main()
{
    std::mt19937 random(1);
    std::map<std::string, std::string> map;
    unsigned long sum = 0;
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 80000; i++)
            map["key number " + std::to_string(random() % 60000)] += " value " + std::to_string(i);
        for (auto entry = map.begin(); entry != map.end();) {
            sum += entry->second.size();
            entry = random() % 3 == 0 ? map.erase(entry) : std::next(entry);
        }
    }
    std::printf("%lu\n", sum);
}
