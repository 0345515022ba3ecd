#pragma once

#include <filesystem>

namespace rocemu::test {

// The files of tests/data. One source file alone is compiled with the place of the project in it:
// so a compiler's cache serves every checkout.
std::filesystem::path data_folder();

}  // namespace rocemu::test
