// The screen of `rocemu top`: what keys do, and the lines that are shown. It knows no terminal, so
// that it can be tested as a function from keys and reports to text. The keys are htop's.
//
// Everything is ASCII text: styles only repeat what the text says, as the selected row has a '>'.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "emulator/cli/top/model.h"
#include "emulator/cli/top/once.h"
#include "emulator/cli/top/table.h"

namespace rocemu::cli::top {

struct Key {
  enum class Kind {
    character,
    function,  // F1 and on
    up,
    down,
    page_up,
    page_down,
    home,
    end,
    enter,
    escape,
    backspace,
    tab,
  };
  Kind kind = Kind::character;
  int value = 0;  // the character, or the number of the function key
};

enum class Style { plain, title, header, selected, bar };

struct Line {
  std::string text;
  Style style = Style::plain;
};

struct Size {
  std::size_t rows = 0;
  std::size_t columns = 0;
};

class Screen {
 public:
  explicit Screen(const Choice& choice);

  // A new picture of the NIC. It is not taken while the screen is stopped.
  void show(const View& view);
  // False: the user wants to quit.
  bool on_key(const Key& key);
  // Returns as many lines as there are rows, none longer than there are columns.
  std::vector<Line> draw(const Size& size);

 private:
  enum class Mode { list, search, filter, sort_menu, detail, help };
  enum class Kind : std::size_t { qps, programs, devices };
  struct List {
    Order order;
    std::string selected;   // a row's key
    std::size_t first = 0;  // the row at the top
  };

  List& list() { return lists_[static_cast<std::size_t>(kind_)]; }
  Table all_rows() const;
  Table rows();
  std::size_t selected_index(const Table& table) const;
  void select(std::size_t index);
  void move(long rows);
  bool on_list_key(const Key& key);
  bool on_character(char c);
  void on_prompt_key(const Key& key);
  void on_menu_key(const Key& key);
  void on_page_key(const Key& key);
  void enter();
  void search();
  const Qp* selected_qp() const;

  void draw_list(const Size& size, std::vector<Line>& lines);
  void draw_devices(const Size& size, std::vector<Line>& lines) const;
  void draw_menu(const Size& size, std::vector<Line>& lines);
  void draw_page(const Size& size, const std::vector<std::string>& text, std::vector<Line>& lines);
  std::string title() const;
  std::string list_title(std::size_t shown, std::size_t all);
  std::string bar() const;

  View view_;
  Mode mode_ = Mode::list;
  Kind kind_ = Kind::qps;
  std::array<List, 3> lists_;
  std::string filter_;
  std::string search_;
  bool stopped_ = false;
  std::size_t menu_ = 0;        // the column that is chosen in the menu
  std::size_t page_first_ = 0;  // the first line of details or help that is shown
  std::size_t page_rows_ = 10;  // that were shown last
};

}  // namespace rocemu::cli::top
