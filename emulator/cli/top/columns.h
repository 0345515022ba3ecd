// The model's devices, programs and QPs as tables.
#pragma once

#include "emulator/cli/top/model.h"
#include "emulator/cli/top/table.h"

namespace rocemu::cli::top {

Table table_of_devices(const View& view);
Table table_of_programs(const View& view);
Table table_of_qps(const View& view);

// A QP's key in its table.
std::string key_of(const Qp& qp);

// The columns by which QPs can be sorted, as the command line names them.
std::vector<std::string> qp_column_ids();

}  // namespace rocemu::cli::top
