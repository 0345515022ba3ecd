// The command line of a program that prints a table, or compares it with a stored one.
#pragma once

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace rocemu::sim {

// Returns the exit status. `table` makes the text.
template <class Table>
int print_or_check(int argc, char** argv, Table table) {
  const bool check = argc == 3 && std::string_view(argv[1]) == "--check";
  if (argc != 1 && !check) {
    std::fprintf(stderr, "usage: %s [--check FILE]\n", argv[0]);
    return 2;
  }
  const std::string now = table();
  if (!check) {
    std::fputs(now.c_str(), stdout);
    return 0;
  }
  std::ifstream file(argv[2]);
  const std::string before{std::istreambuf_iterator<char>(file), {}};
  if (now == before) return 0;
  std::printf("%s holds:\n%s\nand it is now:\n%s\nIf that is meant: %s > %s\n", argv[2],
              before.c_str(), now.c_str(), argv[0], argv[2]);
  return 1;
}

}  // namespace rocemu::sim
