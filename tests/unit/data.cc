#include "tests/unit/data.h"

namespace rocemu::test {

std::filesystem::path data_folder() { return ROCEMU_TEST_DATA; }

}  // namespace rocemu::test
