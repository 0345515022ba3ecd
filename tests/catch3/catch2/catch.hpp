// Catch2 3 under the names of Catch2 2.13, by which the tests are written: Debian 12 has that one
// alone. This folder is searched for headers where version 3 is found (tests/CMakeLists.txt), and
// goes when the tests need not be built with 2.13 any more.
#pragma once

#include <catch2/catch_approx.hpp>
#include <catch2/catch_session.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/catch_version_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers_all.hpp>
#include <string>

namespace Catch {

using Matchers::EndsWith;
using Matchers::StartsWith;
inline auto Contains(const std::string& text) { return Matchers::ContainsSubstring(text); }

}  // namespace Catch

using Catch::Approx;
