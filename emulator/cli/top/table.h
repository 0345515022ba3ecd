// Rows of cells under columns: sorted by one, filtered by a text, and as text in as much room as
// there is. It does not know what the cells are about.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rocemu::cli::top {

struct Column {
  std::string id;       // what a command line names it
  std::string title;    // what stands above it
  bool number = false;  // stands at the right, and is sorted by value, the largest first
  // Where there is no room for all, those with the largest go first; 0 never goes.
  int spare = 0;
  std::size_t least = 0;  // it may be cut to so many characters; 0: it may not
};

struct Cell {
  std::string text;
  double value = 0;  // numbers
};

struct Row {
  std::string key;  // stays the same from one table to the next
  std::vector<Cell> cells;
};

struct Table {
  std::vector<Column> columns;
  std::vector<Row> rows;
};

struct Order {
  std::string column;     // its id
  bool reversed = false;  // numbers: the smallest first; texts: the last
};

// The index of the column with that id; the number of columns when there is none.
std::size_t find_column(const Table& table, std::string_view id);

// Rows that are equal stay in their order. An order by a column that is not there changes nothing.
void sort(Table& table, const Order& order);
// Leaves the rows with a cell that has `text` in it, large or small.
void filter(Table& table, std::string_view text);
bool matches(const Row& row, std::string_view text);

// Lines of text.
struct Layout {
  std::string header;
  std::vector<std::string> rows;
};
// `width`: characters of a line; 0: as many as it takes.
Layout lay_out(const Table& table, std::size_t width);

}  // namespace rocemu::cli::top
