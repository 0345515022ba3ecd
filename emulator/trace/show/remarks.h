// Says what the NIC knows of a packet beyond its headers, and of any record, as people read it.
#pragma once

#include <string>
#include <vector>

#include "emulator/trace/show/story.h"

namespace rocemu::trace {

// "sent again: timeout 2 of 7", "lost: loss=1%", "draws NAK: remote access error, by rule
// bad_rkey". The most telling one first; none for a packet of which there is nothing to say.
std::vector<std::string> remarks_on(const Story& story, const Packet& packet);

// "ack timeout 2 of 7": what has made a QP send a packet again, or a responder refuse one.
std::string because_text(const Story& story, const Packet& packet);

// The same of the event itself: an ack_timeout, a NAK, a refusal.
std::string event_text(const Names& names, const Record& why);

// Says what a receiver said to a packet: "draws NAK: remote access error: rkey 0x1700 of a
// deregistered region", "dropped: no receive posted". `drew`: its nak_sent or rnr_sent; null: there
// is none.
std::string refusal_text(const Names& names, const Record& refused, const Record* drew);

// A record without its time, device and QP: "packet sent: SEND_FIRST, PSN 17, 1024 B, to QP 0x12".
std::string record_text(const Names& names, const Record& record);

}  // namespace rocemu::trace
