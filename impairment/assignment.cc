#include "impairment/assignment.h"

#include <utility>

#include "base/random.h"

namespace rocemu::impairment {
namespace {

ParsedAssignment wrong(std::string error) { return {std::nullopt, std::move(error)}; }

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

}  // namespace

std::string_view to_text(Direction direction) {
  return direction == Direction::transmit ? "tx" : "rx";
}

uint64_t link_seed(uint64_t seed, uint32_t port, Direction direction) {
  const uint64_t link = uint64_t{port} * 2 + (direction == Direction::receive ? 1 : 0);
  return Random(seed ^ Random(link).next()).next();
}

ParsedAssignment parse_assignment(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return parse_assignment(kAllPorts, "", text);
  const std::string_view target = text.substr(0, colon);
  const std::string_view spec = text.substr(colon + 1);
  const size_t dot = target.find('.');
  if (dot == std::string_view::npos) return parse_assignment(target, "", spec);
  const std::string_view direction = target.substr(dot + 1);
  return parse_assignment(target.substr(0, dot), direction.empty() ? "." : direction, spec);
}

ParsedAssignment parse_assignment(std::string_view port, std::string_view direction,
                                  std::string_view spec) {
  Assignment assignment;
  if (port.empty() || port.find_first_of(" ,=.:/") != std::string_view::npos)
    return wrong(quoted(port) + " is no device; write a device or all, like rocemu0.tx:loss=1%");
  assignment.port = port;
  ParsedSpec parsed = parse_spec(spec);
  if (!parsed.spec) return wrong(std::move(parsed.error));
  assignment.spec = *parsed.spec;
  if (direction.empty()) {
    assignment.receive = assignment.spec == Spec{};
    return {std::move(assignment), {}};
  }
  assignment.transmit = direction == "tx" || direction == "both";
  assignment.receive = direction == "rx" || direction == "both";
  if (!assignment.transmit && !assignment.receive)
    return wrong(quoted(direction) + " is no direction; these are tx, rx and both");
  return {std::move(assignment), {}};
}

std::string to_text(const Assignment& assignment) {
  const char* const direction = assignment.transmit ? (assignment.receive ? "both" : "tx") : "rx";
  return assignment.port + "." + direction + ":" + to_text(assignment.spec);
}

}  // namespace rocemu::impairment
