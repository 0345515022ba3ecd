// Handlers for those who look at the NIC from outside: what there is, in pages.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/verbs/numbers.h"
#include "emulator/daemon/control/device_description.h"
#include "emulator/daemon/control/handlers.h"

namespace rocemu::daemon::handlers {
namespace {

static_assert(sizeof(rocemu_resources) <= ROCEMU_MESSAGE_MAX &&
              sizeof(rocemu_named_counters) <= ROCEMU_MESSAGE_MAX);

template <size_t kBytes>
void copy_text(std::string_view text, char (&field)[kBytes]) {
  std::memcpy(field, text.data(), std::min(text.size(), kBytes - 1));
}

std::optional<device::ResourceKind> to_kind(uint32_t kind) {
  using device::ResourceKind;
  switch (kind) {
    case ROCEMU_RESOURCE_CONTEXT:
      return ResourceKind::context;
    case ROCEMU_RESOURCE_PD:
      return ResourceKind::pd;
    case ROCEMU_RESOURCE_CQ:
      return ResourceKind::cq;
    case ROCEMU_RESOURCE_QP:
      return ResourceKind::qp;
    case ROCEMU_RESOURCE_MR:
      return ResourceKind::mr;
    case ROCEMU_RESOURCE_SRQ:
      return ResourceKind::srq;
    default:
      return std::nullopt;
  }
}

uint32_t to_qp_type(transport::Service service) {
  using transport::Service;
  switch (service) {
    case Service::rc:
      return verbs::qp_type::kRc;
    case Service::uc:
      return verbs::qp_type::kUc;
    case Service::ud:
      return verbs::qp_type::kUd;
    case Service::xrc_send:
      return verbs::qp_type::kXrcSend;
    case Service::xrc_receive:
      return verbs::qp_type::kXrcReceive;
    case Service::raw_packet:
      return verbs::qp_type::kRawPacket;
  }
  return 0;
}

rocemu_resource from_report(device::ResourceKind kind, const device::ResourceReport& report) {
  rocemu_resource resource{};
  resource.number = report.number;
  resource.pid = static_cast<uint32_t>(std::max(report.program, 0));
  resource.context = report.context;
  resource.pd = static_cast<uint32_t>(report.pd);
  resource.users = report.users;
  switch (kind) {
    case device::ResourceKind::cq:
      resource.cq.entries = report.entries;
      break;
    case device::ResourceKind::qp:
      resource.type = to_qp_type(report.service);
      resource.state = static_cast<uint32_t>(report.state);
      resource.port = report.port;
      resource.qp = {report.remote_qpn, report.rq_psn, report.sq_psn, report.path_mig_state};
      break;
    case device::ResourceKind::mr:
      resource.mr = {report.iova, report.length_bytes, report.key, report.key};
      break;
    case device::ResourceKind::srq:
      resource.type = report.tag_matching ? ROCEMU_SRQ_TM
                      : report.xrc        ? ROCEMU_SRQ_XRC
                                          : ROCEMU_SRQ_BASIC;
      break;
    default:
      break;
  }
  return resource;
}

rocemu_resources from_page(device::ResourceKind kind, const device::ResourcePage& page) {
  rocemu_resources body{};
  for (const device::ResourceReport& report : page.reports)
    body.resources[body.count++] = from_report(kind, report);
  if (page.next) {
    body.more = 1;
    body.next_context = page.next->context;
    body.next_place = page.next->place;
  }
  return body;
}

bool is_device(const SessionCore& session, uint32_t index) {
  return index < session.host().devices.size();
}

rocemu_device_description from_config(const device::HcaConfig& config) {
  rocemu_device_description body{};
  const rocemu_device_attr device = daemon::describe_device(config);
  const rocemu_port_attr port = describe_port(config.port, config.limits);
  copy_text(config.name, body.name);
  copy_text(device.fw_ver, body.fw_ver);
  copy_text(config.port.netdev_name, body.netdev_name);
  body.node_guid = config.node_guid;
  body.device_cap_flags = device.device_cap_flags;
  body.netdev_index = config.port.interface_index;
  body.port_state = port.state;
  body.phys_state = port.phys_state;
  body.uverbs_major = device::kUverbsMajor;
  body.uverbs_minor = device::kUverbsFirstMinor + config.index;
  return body;
}

}  // namespace

void show_device(SessionCore& session, uint32_t device_index) {
  if (!is_device(session, device_index)) return session.refuse(ENODEV);
  session.on_engine(
      [&engine = session.host().engine, device_index] { return engine.hca(device_index).counts(); },
      [&session, device_index](const device::ObjectCounts& counts) {
        rocemu_device_description body = from_config(session.host().devices[device_index]);
        body.counts[ROCEMU_RESOURCE_CONTEXT] = counts.contexts;
        body.counts[ROCEMU_RESOURCE_PD] = counts.pds;
        body.counts[ROCEMU_RESOURCE_CQ] = counts.cqs;
        body.counts[ROCEMU_RESOURCE_QP] = counts.qps;
        body.counts[ROCEMU_RESOURCE_MR] = counts.mrs;
        body.counts[ROCEMU_RESOURCE_SRQ] = counts.srqs;
        body.counts[ROCEMU_RESOURCE_CM_ID] =
            session.host().administration.count_cm_ids(device_index);
        session.answer(body);
      });
}

void list_resources(SessionCore& session, const rocemu_list_resources& message) {
  if (!is_device(session, message.device_index)) return session.refuse(ENODEV);
  if (message.kind == ROCEMU_RESOURCE_CM_ID) {
    rocemu_resources body{};
    session.host().administration.list_cm_ids(message.device_index, message.place, body);
    return session.answer(body);
  }
  const std::optional<device::ResourceKind> kind = to_kind(message.kind);
  if (!kind) return session.refuse(EINVAL);
  session.on_engine(
      [&engine = session.host().engine, message, kind] {
        return engine.hca(message.device_index)
            .list_resources(*kind, {message.context, message.place}, ROCEMU_RESOURCES_MAX);
      },
      [&session, kind](const device::ResourcePage& page) {
        session.answer(from_page(*kind, page));
      });
}

void named_counters(SessionCore& session, const rocemu_named_counters_of& message) {
  if (!is_device(session, message.device_index)) return session.refuse(ENODEV);
  session.on_engine(
      [&engine = session.host().engine, message]() -> std::optional<transport::Counters> {
        device::Hca& hca = engine.hca(message.device_index);
        if (message.qp_num == 0) return hca.endpoint().counters();
        return hca.counters_of(wire::Qpn{message.qp_num});
      },
      [&session](const std::optional<transport::Counters>& counters) {
        if (!counters) return session.refuse(ENOENT);
        rocemu_named_counters body{};
        for (const auto& [name, value] : session.host().administration.name_counters(*counters)) {
          if (body.count == ROCEMU_NAMED_COUNTERS_MAX) break;
          rocemu_named_counter& counter = body.counters[body.count++];
          copy_text(name, counter.name);
          counter.value = value;
        }
        session.answer(body);
      });
}

}  // namespace rocemu::daemon::handlers
