// sampled_fields.cpp - as sampled_fields.c: of each circle, which has a base class, the radius is read twice as often as
// the id is read and written; of points in a vector x as often as y.
#include <cstdlib>
#include <cstring>
#include <vector>

namespace app
{

struct shape {
    volatile long id = 0;
    char label[72] = {};
    virtual ~shape() = default;
};

struct circle : shape {
    volatile double radius = 1;
    volatile int colour = 0;
};

struct point {
    volatile int x = 0, y = 0;
};

__attribute__((noinline)) double use(const std::vector<circle *> &circles)
{
    double sum = 0;
    for (circle *one : circles) {
        sum += one->radius;
        sum += one->radius;
        sum += one->radius;
        sum += one->radius;
        one->id = one->id + 1;
    }
    return sum;
}

__attribute__((noinline)) long add(const std::vector<point> &points)
{
    long sum = 0;
    for (const point &one : points)
        sum += one.x + one.y;
    return sum;
}

} // namespace app

int main(int argc, char **argv)
{
    const long rounds = argc > 2 ? std::atol(argv[2]) : 1;
    if (argc > 1 && !std::strcmp(argv[1], "points")) {
        std::vector<app::point> points(6000);
        for (long i = 0; i < rounds; i++)
            app::add(points);
        return 0;
    }
    std::vector<app::circle *> circles;
    for (int i = 0; i < 4000; i++)
        circles.push_back(new app::circle);
    for (long i = 0; i < rounds; i++)
        app::use(circles);
    return 0;
}
