// One QP in detail, and the help: lines of text of a given width.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "emulator/cli/top/model.h"

namespace rocemu::cli::top {

using Lines = std::vector<std::string>;

Lines detail_lines(const Qp& qp, std::size_t width);
Lines help_lines();

// Cuts a text into lines of `width` at most, between words where that is possible.
Lines wrap(const std::string& text, std::size_t width);

}  // namespace rocemu::cli::top
