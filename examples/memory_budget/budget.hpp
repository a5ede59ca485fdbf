// budget.hpp - a memory budget for a part of a test, for any C++ test framework (C++11). README.md explains it.
//
//     Budget budget("leaked=0 count=100"); // counts begin at zero
//     parse("input");
//     const bool kept = budget.kept();     // if not, budget.text() says which places broke it
//
// The program must run under `heapwise record`; Budget::measured() says whether it does. Keys are those of
// `heapwise diff --max-increase`: peak, leaked, bytes, count … The budget is that of the whole process: other threads
// count, too.
#ifndef BUDGET_HPP
#define BUDGET_HPP

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <heapwise/heapwise.h>

class Budget
{
  public:
    static bool measured()
    {
        return heapwise_present() != 0;
    }

    explicit Budget(const std::string &limits)
    {
        std::istringstream words(limits);
        for (std::string limit; words >> limit;)
            limits_.push_back(limit);
        find_profile();
        next_dump(before_);
        // The reset is first: the dump then has what is live, and no counts. Nothing here allocates from now on.
        usable_ = *profile_ && heapwise_reset() == 0 && heapwise_dump() == 0;
    }

    Budget(const Budget &) = delete;
    Budget &operator=(const Budget &) = delete;

    // Whether the process kept to the limits since the constructor. Ends what is measured: call it once.
    bool kept()
    {
        char after[sizeof before_];
        next_dump(after);
        const bool dumped = usable_ && heapwise_dump() == 0; // what follows allocates
        if (!measured())
            return fail("the test does not run under heapwise record");
        if (!dumped)
            return fail("Heapwise could not write a dump");
        if (limits_.empty())
            return fail("no limit was given");
        std::vector<std::string> command = {program(), "diff", "--color=never", "--top=3",
                                            "--sort=" + limits_[0].substr(0, limits_[0].find('='))};
        for (const auto &limit : limits_)
            command.push_back("--max-increase=" + limit);
        command.push_back(before_);
        command.push_back(after);
        const int code = run(command);
        if (code == 0 || code == 1) { // otherwise they are kept, to be looked at
            unlink(before_);
            unlink(after);
        }
        shorten();
        return code == 0;
    }

    // What heapwise diff printed: the limits, and the places that changed most.
    const std::string &text() const
    {
        return text_;
    }

  private:
    bool fail(const char *why)
    {
        text_ = why;
        return false;
    }

    static const char *program()
    {
        const char *named = std::getenv("HEAPWISE");
        return named && *named ? named : "heapwise";
    }

    // The profile of this process is mapped, shared.
    void find_profile()
    {
        std::ifstream maps("/proc/self/maps");
        for (std::string line; std::getline(maps, line);) {
            const auto path = line.find('/');
            const auto end = line.rfind(".hwprof");
            if (line.find(" rw-s ") != std::string::npos && path != std::string::npos && end != std::string::npos &&
                end + std::strlen(".hwprof") == line.size() && end - path < sizeof profile_)
                line.copy(profile_, end - path, path);
        }
    }

    // The name of the dump that is written next: the first number that no file has, as the runtime chooses it.
    template <size_t size> void next_dump(char (&name)[size]) const
    {
        static unsigned number = 0; // of the latest dump
        do
            std::snprintf(name, size, "%s.dump%u.hwprof", profile_, ++number);
        while (*profile_ && access(name, F_OK) == 0);
    }

    // Leaves out what comes before the limits, and the lines that rule the text off.
    void shorten()
    {
        const auto limits = text_.find("\nLimits\n");
        std::istringstream lines(limits == std::string::npos ? text_ : text_.substr(limits + 1));
        text_.clear();
        for (std::string line; std::getline(lines, line);)
            if (line.compare(0, 3, "\u2500") != 0 && line.compare(0, 3, "\u2550") != 0)
                text_ += line + "\n";
    }

    // Runs COMMAND outside the profiler; its output becomes the text. Returns its exit code, or -1.
    int run(const std::vector<std::string> &command)
    {
        std::vector<char *> arguments, environment;
        for (const auto &argument : command)
            arguments.push_back(const_cast<char *>(argument.c_str()));
        arguments.push_back(nullptr);
        for (char **variable = environ; *variable; variable++)
            if (std::strncmp(*variable, "LD_PRELOAD=", 11) && std::strncmp(*variable, "HEAPWISE_OPTIONS=", 17))
                environment.push_back(*variable);
        environment.push_back(nullptr);

        int ends[2];
        if (pipe2(ends, O_CLOEXEC)) {
            text_ = "no pipe for the output of heapwise diff";
            return -1;
        }
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
        posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
        pid_t child;
        const int error = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environment.data());
        posix_spawn_file_actions_destroy(&actions);
        close(ends[1]);
        text_.clear();
        char buffer[4096];
        for (ssize_t size; !error && (size = read(ends[0], buffer, sizeof buffer)) > 0;)
            text_.append(buffer, static_cast<size_t>(size));
        close(ends[0]);
        if (error) {
            text_ = command[0] + ": " + std::strerror(error);
            return -1;
        }
        int status = 0;
        waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

    char profile_[4096] = ""; // its path, without ".hwprof"
    char before_[sizeof profile_ + 32];
    std::vector<std::string> limits_; // "leaked=0"
    std::string text_;
    bool usable_ = false;
};

#endif
