// block_types.cpp - as block_types.c, in C++. Templates of the library allocate in its own headers: the line that is
// compared is the innermost one in this file.
#include <cstdlib>
#include <list>
#include <map>
#include <memory>
#include <vector>

#define NOINLINE __attribute__((noinline))

struct shape {
    long id = 3;
    virtual ~shape() {}
    virtual double area() const = 0;
};
struct circle : shape {
    double radius;
    circle(double r) : radius(r) {}
    double area() const override { return radius * radius * 3; }
};
struct square : shape {
    double side, other;
    square(double s);
    double area() const override { return side * other; }
};
NOINLINE square::square(double s) : side(s), other(s) {}
struct point : shape {
    double area() const override { return 0; }
};
namespace app {
struct item {
    int number;
    double value;
    char text[20];
};
struct pod {
    int numbers[5];
};
struct owner {
    std::unique_ptr<item> first;
    item *second;
    owner() : first(new item()), second(new item()) {} // = app::item
    ~owner() { delete second; }
};
template <typename T> struct tree {
    struct node {
        T value;
        node *left, *right;
    };
    node *root = nullptr;
    NOINLINE void add(T value)
    {
        root = new node{value, root, nullptr}; // = app::tree<app::item>::node
    }
};
} // namespace app

static std::vector<shape *> shapes;
static app::tree<app::item> items;

NOINLINE static void add_shapes(int i)
{
    shape *first = new circle(i);  // = circle
    shape *second = new square(i); // = square
    shape *third = new point;      // = point
    shapes.push_back(first);
    shapes.push_back(second);
    shapes.push_back(third); // = shape *
}

NOINLINE static std::unique_ptr<shape> made(int i)
{
    return std::make_unique<circle>(i); // = circle
}

NOINLINE static app::pod *array(int count)
{
    app::pod *pods = new app::pod[count]; // = app::pod
    pods[0].numbers[2] = count;
    return pods;
}

NOINLINE static shape **pointers(int count)
{
    shape **all = new shape *[count]; // = shape *
    all[count - 1] = nullptr;
    return all;
}

NOINLINE static double with_list(int count)
{
    std::list<double> numbers;
    for (int i = 0; i < count; i++)
        numbers.push_back(i); // = std::_List_node<double>
    return numbers.back();
}

NOINLINE static int with_vector(int count)
{
    std::vector<app::item> all;
    for (int i = 0; i < count; i++)
        all.push_back({i, 1, "x"}); // = app::item
    return all.back().number;
}

NOINLINE static void *raw(size_t size)
{
    return ::operator new(size); // = ?
}

int main(int argc, char **)
{
    for (int i = 0; i < 20; i++)
        add_shapes(i);
    for (int i = 0; i < 5; i++)
        items.add({i, 2, "y"});
    std::unique_ptr<shape> one = made(argc);
    app::owner owner;
    app::pod *pods = array(argc + 9);
    shape **all = pointers(argc + 20);
    double sum = with_list(10) + with_vector(100) + one->area() + owner.first->value;
    for (shape *each : shapes)
        sum += each->area();
    void *bytes = raw((size_t)argc + 30);
    const bool odd = sum == 1 || !pods || !all || !bytes;
    operator delete(bytes);
    delete[] pods;
    delete[] all;
    for (shape *each : shapes)
        delete each;
    return odd;
}
