#include "emulator/cli/top/screen.h"

#include <algorithm>

#include "emulator/cli/top/columns.h"
#include "emulator/cli/top/details.h"
#include "emulator/cli/top/numbers.h"

namespace rocemu::cli::top {
namespace {

using Of = Key::Kind;

constexpr std::size_t kMaxDevices = 4;  // above the list
constexpr std::size_t kRowsForDevices = 16;
constexpr const char* kKindNames[] = {"QPs", "Programs", "Devices"};

bool is_character(const Key& key, char c) { return key.kind == Of::character && key.value == c; }
bool is_function(const Key& key, int number) {
  return key.kind == Of::function && key.value == number;
}

}  // namespace

Screen::Screen(const Choice& choice) : filter_(choice.filter) {
  lists_[0].order = choice.order;
  lists_[1].order = {"tx"};
  lists_[2].order = {"device"};
}

void Screen::show(const View& view) {
  if (!stopped_) view_ = view;
}

Table Screen::all_rows() const {
  switch (kind_) {
    case Kind::programs:
      return table_of_programs(view_);
    case Kind::devices:
      return table_of_devices(view_);
    case Kind::qps:
      break;
  }
  return table_of_qps(view_);
}

Table Screen::rows() {
  Table table = all_rows();
  sort(table, list().order);
  filter(table, filter_);
  return table;
}

// The first one where what was selected has gone.
std::size_t Screen::selected_index(const Table& table) const {
  const List& list = lists_[static_cast<std::size_t>(kind_)];
  const auto found = std::ranges::find(table.rows, list.selected, &Row::key);
  return found == table.rows.end() ? 0 : static_cast<std::size_t>(found - table.rows.begin());
}

void Screen::select(std::size_t index) {
  const Table table = rows();
  if (table.rows.empty()) return;
  list().selected = table.rows[std::min(index, table.rows.size() - 1)].key;
}

void Screen::move(long rows_down) {
  const auto at = static_cast<long>(selected_index(rows()));
  select(static_cast<std::size_t>(std::max(0L, at + rows_down)));
}

const Qp* Screen::selected_qp() const {
  for (const Qp& qp : view_.qps)
    if (key_of(qp) == lists_[0].selected) return &qp;
  return nullptr;
}

bool Screen::on_key(const Key& key) {
  switch (mode_) {
    case Mode::list:
      return on_list_key(key);
    case Mode::search:
    case Mode::filter:
      on_prompt_key(key);
      return true;
    case Mode::sort_menu:
      on_menu_key(key);
      return true;
    case Mode::detail:
    case Mode::help:
      on_page_key(key);
      return true;
  }
  return true;
}

bool Screen::on_list_key(const Key& key) {
  const auto page = static_cast<long>(page_rows_);
  switch (key.kind) {
    case Of::up:
      move(-1);
      break;
    case Of::down:
      move(1);
      break;
    case Of::page_up:
      move(-page);
      break;
    case Of::page_down:
      move(page);
      break;
    case Of::home:
      select(0);
      break;
    case Of::end:
      select(static_cast<std::size_t>(-1));
      break;
    case Of::enter:
      enter();
      break;
    case Of::escape:
      filter_.clear();
      break;
    case Of::tab:
      kind_ = static_cast<Kind>((static_cast<std::size_t>(kind_) + 1) % lists_.size());
      break;
    case Of::function:
      if (key.value == 1) return on_character('h');
      if (key.value == 3) return on_character('/');
      if (key.value == 4) return on_character('\\');
      if (key.value == 6) return on_character('>');
      return key.value != 10;
    case Of::character:
      return on_character(static_cast<char>(key.value));
    case Of::backspace:
      break;
  }
  return true;
}

bool Screen::on_character(char c) {
  const auto sort_by = [&](const char* column, const char* otherwise) {
    const Table table = all_rows();
    list().order = {find_column(table, column) < table.columns.size() ? column : otherwise};
  };
  switch (c) {
    case 'q':
      return false;
    case 'h':
    case '?':
      mode_ = Mode::help;
      page_first_ = 0;
      break;
    case '/':
      mode_ = Mode::search;
      search_.clear();
      break;
    case '\\':
      mode_ = Mode::filter;
      break;
    case '>':
    case '<':
    case '.':
    case ',':
      mode_ = Mode::sort_menu;
      menu_ = find_column(all_rows(), list().order.column);
      break;
    case 'I':
      list().order.reversed = !list().order.reversed;
      break;
    case 'P':
      sort_by("tx", "tx");
      break;
    case 'M':
      sort_by("messages", "tx");
      break;
    case 'T':
      sort_by("age", "tx");
      break;
    case 'N':
      sort_by("qpn", kind_ == Kind::devices ? "device" : "pid");
      break;
    case 'Z':
      stopped_ = !stopped_;
      break;
    default:
      break;
  }
  return true;
}

void Screen::enter() {
  const Table table = rows();
  if (table.rows.empty()) return;
  const Row& row = table.rows[selected_index(table)];
  list().selected = row.key;
  if (kind_ == Kind::qps) {
    mode_ = Mode::detail;
    page_first_ = 0;
    return;
  }
  const std::size_t name = find_column(table, kind_ == Kind::programs ? "program" : "device");
  filter_ = row.cells[name].text;
  kind_ = Kind::qps;
}

void Screen::on_prompt_key(const Key& key) {
  std::string& text = mode_ == Mode::search ? search_ : filter_;
  if (key.kind == Of::enter || is_function(key, 10)) {
    mode_ = Mode::list;
  } else if (key.kind == Of::escape) {
    text.clear();
    mode_ = Mode::list;
  } else if (key.kind == Of::backspace) {
    if (!text.empty()) text.pop_back();
  } else if (key.kind == Of::character) {
    text += static_cast<char>(key.value);
  } else if (is_function(key, 3) && mode_ == Mode::search) {
    move(1);
  }
  if (mode_ == Mode::search) search();
}

// Selects the next row with the text, from the selected one on.
void Screen::search() {
  const Table table = rows();
  const std::size_t at = selected_index(table);
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const Row& row = table.rows[(at + i) % table.rows.size()];
    if (!matches(row, search_)) continue;
    list().selected = row.key;
    return;
  }
}

void Screen::on_menu_key(const Key& key) {
  const std::size_t columns = all_rows().columns.size();
  if (key.kind == Of::up && menu_ > 0) --menu_;
  if (key.kind == Of::down && menu_ + 1 < columns) ++menu_;
  if (key.kind == Of::home) menu_ = 0;
  if (key.kind == Of::end) menu_ = columns - 1;
  if (key.kind == Of::enter) list().order = {all_rows().columns[std::min(menu_, columns - 1)].id};
  if (key.kind == Of::enter || key.kind == Of::escape || is_character(key, 'q') ||
      is_function(key, 10))
    mode_ = Mode::list;
}

void Screen::on_page_key(const Key& key) {
  const std::size_t page = std::max<std::size_t>(page_rows_, 1);
  if (key.kind == Of::up && page_first_ > 0) --page_first_;
  if (key.kind == Of::down) ++page_first_;
  if (key.kind == Of::page_up) page_first_ -= std::min(page, page_first_);
  if (key.kind == Of::page_down) page_first_ += page;
  if (key.kind == Of::home) page_first_ = 0;
  if (key.kind == Of::escape || key.kind == Of::enter || is_character(key, 'q') ||
      is_character(key, 'h') || is_function(key, 1) || is_function(key, 10))
    mode_ = Mode::list;
  if (is_character(key, 'Z')) stopped_ = !stopped_;
}

std::string Screen::title() const {
  std::string text = "rocemu top - NIC '" + view_.nic + "' up " + clock_time(view_.uptime_s) +
                     ", " + std::to_string(view_.devices.size()) + " devices, " +
                     std::to_string(view_.programs.size()) + " programs, " +
                     std::to_string(view_.qps.size() + view_.qps_not_shown) + " QPs";
  if (stopped_) text += " - STOPPED";
  return text;
}

std::string Screen::list_title(std::size_t shown, std::size_t all) {
  std::string text = std::string(kKindNames[static_cast<std::size_t>(kind_)]) + ": ";
  text += shown == all ? std::to_string(all) : std::to_string(shown) + " of " + std::to_string(all);
  text += ", by " + list().order.column + (list().order.reversed ? ", reversed" : "");
  if (!filter_.empty()) text += ", filter '" + filter_ + "'";
  if (kind_ == Kind::qps && view_.qps_not_shown > 0)
    text += ", " + std::to_string(view_.qps_not_shown) + " not listed by the NIC";
  return text;
}

std::string Screen::bar() const {
  switch (mode_) {
    case Mode::search:
      return "Search: " + search_ + "_   Enter done  F3 next  Esc cancel";
    case Mode::filter:
      return "Filter: " + filter_ + "_   Enter done  Esc clear";
    case Mode::sort_menu:
      return "Up Down choose  Enter sort by it  Esc back";
    case Mode::detail:
    case Mode::help:
      return "Esc back  Up Down PgUp PgDn scroll  Z stop";
    case Mode::list:
      break;
  }
  return "F1 Help  F3 Search  F4 Filter  F6 Sort  Tab View  Enter Detail  Z Stop  F10 Quit";
}

void Screen::draw_devices(const Size& size, std::vector<Line>& lines) const {
  Table table = table_of_devices(view_);
  const std::size_t all = table.rows.size();
  if (all > kMaxDevices) {
    sort(table, {"tx"});
    table.rows.resize(kMaxDevices);
  }
  const Layout layout = lay_out(table, size.columns - 1);
  lines.push_back({" " + layout.header, Style::header});
  for (const std::string& row : layout.rows) lines.push_back({" " + row});
  if (all > kMaxDevices)
    lines.push_back({" and " + std::to_string(all - kMaxDevices) + " more: Tab"});
}

void Screen::draw_list(const Size& size, std::vector<Line>& lines) {
  if (kind_ != Kind::devices && size.rows >= kRowsForDevices) draw_devices(size, lines);
  const Table table = rows();
  const Layout layout = lay_out(table, size.columns - 1);
  lines.push_back({list_title(table.rows.size(), all_rows().rows.size()), Style::title});
  lines.push_back({" " + layout.header, Style::header});
  if (layout.rows.empty())
    lines.push_back({filter_.empty() ? " none" : " none has that text; Esc shows all"});

  const std::size_t room = size.rows > lines.size() + 1 ? size.rows - lines.size() - 1 : 0;
  page_rows_ = std::max<std::size_t>(room, 1);
  const std::size_t selected = selected_index(table);
  List& shown = list();
  if (selected < shown.first) shown.first = selected;
  if (room > 0 && selected >= shown.first + room) shown.first = selected - room + 1;
  if (layout.rows.size() <= room) shown.first = 0;
  for (std::size_t i = shown.first; i < layout.rows.size() && i < shown.first + room; ++i)
    lines.push_back({(i == selected ? ">" : " ") + layout.rows[i],
                     i == selected ? Style::selected : Style::plain});
}

void Screen::draw_menu(const Size& size, std::vector<Line>& lines) {
  lines.push_back({"Sort by", Style::title});
  const Table table = all_rows();
  menu_ = std::min(menu_, table.columns.size() - 1);
  const std::size_t room = size.rows > lines.size() + 1 ? size.rows - lines.size() - 1 : 0;
  const std::size_t first = menu_ >= room && room > 0 ? menu_ - room + 1 : 0;
  for (std::size_t i = first; i < table.columns.size() && i < first + room; ++i)
    lines.push_back({(i == menu_ ? ">" : " ") + table.columns[i].id,
                     i == menu_ ? Style::selected : Style::plain});
}

void Screen::draw_page(const Size& size, const std::vector<std::string>& text,
                       std::vector<Line>& lines) {
  const std::size_t room = size.rows > lines.size() + 1 ? size.rows - lines.size() - 1 : 0;
  page_rows_ = room;
  page_first_ = std::min(page_first_, text.size() > room ? text.size() - room : 0);
  for (std::size_t i = page_first_; i < text.size() && i < page_first_ + room; ++i)
    lines.push_back({text[i]});
}

std::vector<Line> Screen::draw(const Size& size) {
  std::vector<Line> lines;
  if (size.rows == 0 || size.columns < 2) return lines;
  lines.push_back({title(), Style::title});
  if (mode_ == Mode::sort_menu) {
    draw_menu(size, lines);
  } else if (mode_ == Mode::help) {
    draw_page(size, help_lines(), lines);
  } else if (mode_ == Mode::detail) {
    const Qp* const qp = selected_qp();
    draw_page(size, qp != nullptr ? detail_lines(*qp, size.columns) : Lines{"This QP is gone."},
              lines);
  } else {
    draw_list(size, lines);
  }
  lines.resize(size.rows - 1);
  lines.push_back({bar(), Style::bar});
  for (Line& line : lines)
    if (line.text.size() > size.columns) line.text.resize(size.columns);
  return lines;
}

}  // namespace rocemu::cli::top
