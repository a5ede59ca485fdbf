// table.hpp - what the tests test: reads "name=value" lines. The second one is as wasteful as it looks.
#ifndef TABLE_HPP
#define TABLE_HPP

#include <map>
#include <sstream>
#include <string>

using Table = std::map<std::string, std::string>;

inline Table parse(const std::string &text)
{
    Table table;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        table[line.substr(0, line.find('='))] = line.substr(line.find('=') + 1);
    return table;
}

inline Table *parse_wastefully(const std::string &text)
{
    static Table *latest; // the previous table is never freed
    latest = new Table;
    for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
        const std::string rest = text.substr(at); // a copy of all that follows, for each line
        for (const auto &entry : parse(rest.substr(0, rest.find('\n'))))
            (*latest)[entry.first] = entry.second;
    }
    return latest;
}

inline std::string example(int lines)
{
    std::string text;
    for (int i = 0; i < lines; i++)
        text +=
            "the name of entry number " + std::to_string(i) + "=the value of entry number " + std::to_string(i) + "\n";
    return text;
}

#endif
