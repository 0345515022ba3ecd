#include "emulator/cli/top/table.h"

#include <algorithm>
#include <cctype>

namespace rocemu::cli::top {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

struct Placed {
  std::size_t column;
  std::size_t width;
};

std::size_t total(const std::vector<Placed>& placed) {
  std::size_t sum = placed.empty() ? 0 : placed.size() - 1;
  for (const Placed& one : placed) sum += one.width;
  return sum;
}

std::vector<Placed> natural_widths(const Table& table) {
  std::vector<Placed> placed;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    std::size_t width = table.columns[i].title.size();
    for (const Row& row : table.rows) width = std::max(width, row.cells[i].text.size());
    placed.push_back({i, width});
  }
  return placed;
}

// Cuts what may be cut, then leaves out what can be spared.
void fit(const Table& table, std::size_t width, std::vector<Placed>& placed) {
  const auto column = [&](const Placed& one) -> const Column& { return table.columns[one.column]; };
  while (total(placed) > width) {
    for (Placed& one : placed) {
      const std::size_t excess = total(placed) > width ? total(placed) - width : 0;
      const std::size_t least = column(one).least;
      if (least != 0 && one.width > least) one.width -= std::min(excess, one.width - least);
    }
    if (total(placed) <= width) return;
    const auto spare =
        std::ranges::max_element(placed, {}, [&](const Placed& one) { return column(one).spare; });
    if (column(*spare).spare == 0) return;
    placed.erase(spare);
    for (Placed& one : placed)  // there may be room again
      if (column(one).least != 0) one.width = natural_widths(table)[one.column].width;
  }
}

std::string padded(std::string text, std::size_t width, bool right) {
  if (text.size() > width) text = width == 0 ? "" : text.substr(0, width - 1) + "~";
  const std::string space(width - text.size(), ' ');
  return right ? space + text : text + space;
}

}  // namespace

std::size_t find_column(const Table& table, std::string_view id) {
  const auto found = std::ranges::find(table.columns, id, &Column::id);
  return static_cast<std::size_t>(found - table.columns.begin());
}

void sort(Table& table, const Order& order) {
  const std::size_t index = find_column(table, order.column);
  if (index == table.columns.size()) return;
  const bool number = table.columns[index].number;
  std::ranges::stable_sort(table.rows, [&](const Row& left, const Row& right) {
    const Cell& first = (order.reversed ? right : left).cells[index];
    const Cell& second = (order.reversed ? left : right).cells[index];
    return number ? first.value > second.value : first.text < second.text;
  });
}

bool matches(const Row& row, std::string_view text) {
  const std::string wanted = lower(text);
  return std::ranges::any_of(row.cells, [&](const Cell& cell) {
    return lower(cell.text).find(wanted) != std::string::npos;
  });
}

void filter(Table& table, std::string_view text) {
  if (text.empty()) return;
  std::erase_if(table.rows, [&](const Row& row) { return !matches(row, text); });
}

Layout lay_out(const Table& table, std::size_t width) {
  std::vector<Placed> placed = natural_widths(table);
  if (width != 0) fit(table, width, placed);
  const auto line = [&](auto text_of) {
    std::string result;
    for (const Placed& one : placed) {
      if (!result.empty()) result += ' ';
      const bool last = &one == &placed.back();
      std::string text = padded(text_of(one.column), one.width, table.columns[one.column].number);
      if (last) text.erase(text.find_last_not_of(' ') + 1);
      result += text;
    }
    return width != 0 && result.size() > width ? result.substr(0, width) : result;
  };
  Layout layout;
  layout.header = line([&](std::size_t i) { return table.columns[i].title; });
  for (const Row& row : table.rows)
    layout.rows.push_back(line([&](std::size_t i) { return row.cells[i].text; }));
  return layout;
}

}  // namespace rocemu::cli::top
