#include "emulator/cli/top/terminal.h"

#include <curses.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "emulator/cli/process/exit_codes.h"

namespace rocemu::cli::top {
namespace {

constexpr int kEscape = 27;
constexpr int kDelete = 127;

int attribute_of(Style style) {
  switch (style) {
    case Style::title:
      return A_BOLD;
    case Style::header:
      return A_UNDERLINE;
    case Style::selected:
    case Style::bar:
      return A_REVERSE;
    case Style::plain:
      break;
  }
  return A_NORMAL;
}

std::optional<Key> special_key(int code) {
  using Of = Key::Kind;
  switch (code) {
    case KEY_UP:
      return Key{Of::up};
    case KEY_DOWN:
      return Key{Of::down};
    case KEY_PPAGE:
      return Key{Of::page_up};
    case KEY_NPAGE:
      return Key{Of::page_down};
    case KEY_HOME:
      return Key{Of::home};
    case KEY_END:
      return Key{Of::end};
    case KEY_ENTER:
    case '\n':
    case '\r':
      return Key{Of::enter};
    case KEY_BACKSPACE:
    case kDelete:
    case '\b':
      return Key{Of::backspace};
    case '\t':
    case KEY_BTAB:
      return Key{Of::tab};
    case kEscape:
      return Key{Of::escape};
    default:
      return std::nullopt;
  }
}

}  // namespace

Terminal::Terminal() : screen_(nullptr) {
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0)
    throw Failure("top needs a terminal; for scripts there is: rocemu top --once", kUsage);
  const char* const kind = std::getenv("TERM");
  screen_ = ::newterm(nullptr, stdout, stdin);
  if (screen_ == nullptr)
    throw Failure(std::string("this terminal is of a kind that is not known here (TERM=") +
                      (kind == nullptr ? "" : kind) + "); rocemu top --once needs none",
                  kUsage);
  ::cbreak();  // ^C and ^Z stay signals
  ::noecho();
  ::keypad(stdscr, TRUE);
  ::nodelay(stdscr, TRUE);
  ::set_escdelay(25);
  ::curs_set(0);
}

Terminal::~Terminal() {
  ::endwin();
  ::delscreen(static_cast<SCREEN*>(screen_));
}

Size Terminal::size() const {
  return {static_cast<std::size_t>(getmaxy(stdscr)), static_cast<std::size_t>(getmaxx(stdscr))};
}

void Terminal::draw(const std::vector<Line>& lines) {
  const Size room = size();
  ::werase(stdscr);
  for (std::size_t i = 0; i < lines.size() && i < room.rows; ++i) {
    std::string text = lines[i].text;
    if (lines[i].style == Style::bar || lines[i].style == Style::selected)
      text.resize(room.columns, ' ');
    wattrset(stdscr, attribute_of(lines[i].style));
    mvwaddnstr(stdscr, static_cast<int>(i), 0, text.c_str(), static_cast<int>(room.columns));
  }
  wattrset(stdscr, A_NORMAL);
  ::wrefresh(stdscr);
}

std::optional<Key> Terminal::read_key() {
  for (int code = ::wgetch(stdscr); code != ERR; code = ::wgetch(stdscr)) {
    if (const auto key = special_key(code)) return key;
    if (code >= KEY_F(1) && code <= KEY_F(12)) return Key{Key::Kind::function, code - KEY_F(0)};
    if (code >= ' ' && code <= '~') return Key{Key::Kind::character, code};
  }
  return std::nullopt;
}

}  // namespace rocemu::cli::top
