#include <algorithm>
#include <array>

#include "tests/interop/scenario.h"

namespace rocemu::interop {
namespace {

constexpr std::array kScenarios = {
    Scenario{"send", IBV_WR_SEND},
    Scenario{"send-imm", IBV_WR_SEND_WITH_IMM},
    Scenario{"write", IBV_WR_RDMA_WRITE},
    Scenario{"write-imm", IBV_WR_RDMA_WRITE_WITH_IMM},
    Scenario{"read", IBV_WR_RDMA_READ},
    Scenario{"cas", IBV_WR_ATOMIC_CMP_AND_SWP},
    Scenario{"fetch-add", IBV_WR_ATOMIC_FETCH_AND_ADD},
    Scenario{"datagram", IBV_WR_SEND, Fault::none, true},
    Scenario{"datagram-imm", IBV_WR_SEND_WITH_IMM, Fault::none, true},
    Scenario{"write-wrong-key", IBV_WR_RDMA_WRITE, Fault::wrong_key},
    Scenario{"read-wrong-key", IBV_WR_RDMA_READ, Fault::wrong_key},
    Scenario{"fetch-add-wrong-key", IBV_WR_ATOMIC_FETCH_AND_ADD, Fault::wrong_key},
    Scenario{"write-behind-the-region", IBV_WR_RDMA_WRITE, Fault::behind_the_region},
    Scenario{"read-behind-the-region", IBV_WR_RDMA_READ, Fault::behind_the_region},
    Scenario{"write-without-right", IBV_WR_RDMA_WRITE, Fault::no_right},
    Scenario{"read-without-right", IBV_WR_RDMA_READ, Fault::no_right},
    Scenario{"fetch-add-without-right", IBV_WR_ATOMIC_FETCH_AND_ADD, Fault::no_right},
    Scenario{"send-rnr", IBV_WR_SEND, Fault::no_receive},
    Scenario{"write-imm-rnr", IBV_WR_RDMA_WRITE_WITH_IMM, Fault::no_receive},
    Scenario{"send-too-long", IBV_WR_SEND, Fault::short_receive},
    Scenario{"send-unanswered", IBV_WR_SEND, Fault::nobody_answers},
};

}  // namespace

std::span<const Scenario> scenarios() { return kScenarios; }

const Scenario* find_scenario(std::string_view name) {
  const auto found = std::ranges::find(kScenarios, name, &Scenario::name);
  return found == kScenarios.end() ? nullptr : &*found;
}

}  // namespace rocemu::interop
