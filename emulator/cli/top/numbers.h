// Figures in few characters, as people read them.
#pragma once

#include <string>

namespace rocemu::cli::top {

// 0 to 999 as they are, then with k, M, G, T: 4 characters at most for what is not negative, but
// for a decimal point: 1.2k, 12.3G, 123M.
std::string short_number(double value);
// 12us, 1.2ms, 3.4s, 12m, 3h, 4d.
std::string short_time(double time_us);
// 1:02:03, or 3d 1:02:03.
std::string clock_time(double time_s);

}  // namespace rocemu::cli::top
