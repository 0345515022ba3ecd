// How the engine's threads ask the system for the CPU: a little at a time, often, and before
// others. What the system does not grant is done without.
#pragma once

namespace rocemu::daemon {

// For the calling thread:
//   - timers that are exact;
//   - a nice value of -10, for which one has to be privileged;
//   - a slice of 100 us, which anybody may ask for from Linux 6.12 on. By it EEVDF sets a thread's
//     deadline (Documentation/scheduler/sched-eevdf.rst): one that is woken up with a short slice
//     goes before those with a long one, and a yield gives up no more than a slice.
void raise_thread_priority();

// For the process, where it is the leader of its session: Linux may schedule sessions rather than
// threads against each other (sched(7), "The autogroup feature"), and nice values count in their
// session alone. There the session gets a nice value of -10, for which one has to be privileged.
void raise_session_priority();

}  // namespace rocemu::daemon
