// The files of ladder/, which are part of the program: generated from ladder_page.cc.in.
#pragma once

#include <string_view>

namespace rocemu::trace {

extern const std::string_view kLadderHtml;
extern const std::string_view kLadderStyle;
extern const std::string_view kLadderScript;

}  // namespace rocemu::trace
